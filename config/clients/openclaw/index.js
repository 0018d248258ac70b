// PPS memory for OpenClaw's memory slot. Its settings come from plugins.entries.pps.config in openclaw.json.
import { tell } from "./hook_program.js"

/** Return the text of a message, whose content is a text or a list of parts. */
function textOf(message) {
  if (typeof message?.content === "string") return message.content
  const parts = Array.isArray(message?.content) ? message.content : []
  return parts.filter((part) => part.type === "text").map((part) => part.text).join("\n")
}

export default {
  id: "pps",
  name: "PPS memory",
  kind: "memory",
  register(api) {
    const settings = api.pluginConfig ?? {}
    const begun = new Set()
    const common = (context) => ({
      session_id: context?.sessionId ?? context?.sessionKey ?? "",
      cwd: context?.workspaceDir ?? "",
    })

    api.on("before_prompt_build", async (event, context) => {
      const about = common(context)
      const texts = []
      if (!begun.has(about.session_id)) {
        begun.add(about.session_id)
        texts.push(await tell("openclaw", settings, "SessionStart", { ...about, source: "startup" }))
      }
      if (event.prompt?.trim()) {
        texts.push(await tell("openclaw", settings, "UserPromptSubmit", { ...about, prompt: event.prompt }))
      }
      const shown = texts.filter(Boolean).join("\n\n")
      return shown ? { prependContext: shown } : undefined
    })
    api.on("agent_end", async (event, context) => {
      const last = (event.messages ?? []).findLast((message) => message.role === "assistant")
      const text = textOf(last)
      if (text) await tell("openclaw", settings, "Stop", { ...common(context), last_assistant_message: text })
    })
    api.on("before_compaction", async (_, context) => {
      begun.delete(common(context).session_id)
      await tell("openclaw", settings, "PreCompact", common(context))
    })
    api.on("session_end", async (event, context) => {
      const about = common(context)
      about.session_id ||= event?.sessionId ?? ""
      begun.delete(about.session_id)
      await tell("openclaw", settings, "SessionEnd", about)
    })
  },
}
