// PPS memory for OpenClaw's memory slot. Its settings come from plugins.entries.pps.config in openclaw.json.
import { spawn } from "node:child_process"

const WAIT_MS = 6000

/** Tell the hook program of an event; resolve to what the agent is given, or to an empty text. Never rejects. */
function tell(settings, event, payload) {
  return new Promise((resolve) => {
    const options = ["--client", "openclaw"]
    if (settings.entity) options.push("--entity", settings.entity)
    if (settings.home) options.push("--home", settings.home)
    const program = ["-I", "-S", settings.program, event, ...options]
    let out = ""
    try {
      const child = spawn(settings.python, program, { stdio: ["pipe", "pipe", "ignore"] })
      const timer = setTimeout(() => child.kill(), WAIT_MS)
      child.on("error", () => resolve(""))
      child.stdin.on("error", () => {})
      child.stdout.on("data", (piece) => (out += piece))
      child.on("close", () => {
        clearTimeout(timer)
        try {
          resolve(JSON.parse(out).hookSpecificOutput.additionalContext ?? "")
        } catch {
          resolve("")
        }
      })
      child.stdin.end(JSON.stringify(payload))
    } catch {
      resolve("")
    }
  })
}

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
        texts.push(await tell(settings, "SessionStart", { ...about, source: "startup" }))
      }
      if (event.prompt?.trim()) {
        texts.push(await tell(settings, "UserPromptSubmit", { ...about, prompt: event.prompt }))
      }
      const shown = texts.filter(Boolean).join("\n\n")
      return shown ? { prependContext: shown } : undefined
    })
    api.on("agent_end", async (event, context) => {
      const last = (event.messages ?? []).findLast((message) => message.role === "assistant")
      const text = textOf(last)
      if (text) await tell(settings, "Stop", { ...common(context), last_assistant_message: text })
    })
    api.on("before_compaction", async (_, context) => {
      begun.delete(common(context).session_id)
      await tell(settings, "PreCompact", common(context))
    })
    api.on("session_end", async (event, context) => {
      const about = common(context)
      about.session_id ||= event?.sessionId ?? ""
      begun.delete(about.session_id)
      await tell(settings, "SessionEnd", about)
    })
  },
}
