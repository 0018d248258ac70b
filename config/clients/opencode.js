// PPS memory for OpenCode. `pps hooks install --client opencode` writes this file and `uninstall` removes it.
const SETTINGS = {}

import { tell } from "./openclaw/hook_program.js"

const said = (parts) =>
  parts
    .filter((part) => part.type === "text" && !part.synthetic && !part.ignored)
    .map((part) => part.text)
    .join("\n")

export const PPS = async ({ client, directory }) => {
  const begun = new Set()
  const answered = new Map()
  const common = (session) => ({ session_id: session, cwd: directory, project: directory })

  async function lastAnswer(session) {
    const answer = await client.session.messages({ path: { id: session } })
    const messages = (answer.data ?? answer) || []
    const last = messages.findLast((one) => one.info.role === "assistant")
    if (!last || answered.get(session) === last.info.id) return ""
    answered.set(session, last.info.id)
    return said(last.parts)
  }

  return {
    "chat.message": async (input, output) => {
      const session = input.sessionID
      const texts = []
      if (!begun.has(session)) {
        begun.add(session)
        texts.push(await tell("opencode", SETTINGS, "SessionStart", { ...common(session), source: "startup" }))
      }
      const prompt = said(output.parts)
      if (prompt.trim()) {
        const id = input.messageID ?? output.message.id
        texts.push(await tell("opencode", SETTINGS, "UserPromptSubmit", { ...common(session), prompt, prompt_id: id }))
      }
      for (const [at, text] of texts.entries()) {
        if (!text) continue
        const id = `prt_pps${Date.now().toString(36)}${at}`
        const place = { id, sessionID: session, messageID: output.message.id }
        output.parts.push({ ...place, type: "text", text, synthetic: true })
      }
    },
    "tool.execute.after": async (input) => {
      if (!["bash", "edit", "write", "patch", "webfetch", "task"].includes(input.tool)) return
      const tool = { tool_name: input.tool, tool_use_id: input.callID, tool_input: input.args ?? {} }
      await tell("opencode", SETTINGS, "PostToolUse", { ...common(input.sessionID), ...tool })
    },
    "experimental.session.compacting": async (input) => {
      begun.delete(input.sessionID)
      await tell("opencode", SETTINGS, "PreCompact", common(input.sessionID))
    },
    event: async ({ event }) => {
      const session = event.properties?.sessionID ?? event.properties?.info?.id
      if (event.type === "session.idle") {
        const text = await lastAnswer(session).catch(() => "")
        if (text) await tell("opencode", SETTINGS, "Stop", { ...common(session), last_assistant_message: text })
      } else if (event.type === "session.deleted" && begun.delete(session)) {
        await tell("opencode", SETTINGS, "SessionEnd", common(session))
      }
    },
  }
}
