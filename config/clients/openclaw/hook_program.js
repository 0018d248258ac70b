// The call of PPS's hook program, for the plugins of OpenClaw and OpenCode.
import { spawn } from "node:child_process"

const WAIT_MS = 6000

/** Tell the hook program of an event; resolve to what the agent is given, or to an empty text. Never rejects. */
export function tell(client, settings, event, payload) {
  return new Promise((resolve) => {
    const options = ["--client", client]
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
