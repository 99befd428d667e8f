// One answer of the API that stays fresh while a component is on the page.
import { untrack } from 'svelte'
import { Gone, Refused, ask, link } from './link.svelte.js'

class Watched {
  data = $state.raw(null)
  error = $state.raw(null)
  at = $state.raw(0) // performance.now() of the last answer
}

// `path` is a function; a null path asks nothing.  `every`: the least time between two requests, in ms.
// `keep`: the old answer stays until the answer to another path is there.
export function watch(path, every = 1000, keep = false) {
  const seen = new Watched()
  let current = null, busy = false, last = 0, turn = 0

  async function load(p) {
    const mine = ++turn
    busy = true
    last = performance.now()
    try {
      const data = await ask(p)
      if (mine !== turn) return
      seen.data = data
      seen.error = null
      seen.at = performance.now()
    } catch (error) {
      // A lost master is reported once, for the whole page; the last answer stays on the screen.
      if (mine === turn && !(error instanceof Gone)) seen.error = error instanceof Refused ? error : new Error(String(error))
    } finally {
      if (mine === turn) busy = false
    }
  }

  $effect(() => {
    const p = path()
    const pace = typeof every === 'function' ? every() : every
    void link.tick
    const ready = link.token && link.me
    untrack(() => {
      if (p !== current) {
        current = p
        turn += 1
        busy = false
        last = 0
        if (!keep) seen.data = null
        seen.error = null
      }
      if (p && ready && !busy && (!last || performance.now() - last >= pace - 50)) load(p)
    })
  })

  seen.again = () => { if (current) load(current) }
  return seen
}

// An age that the master measured, plus the time since then.  It grows while no master answers, as it should.
export function grown(age_s, at) {
  void link.now
  return age_s === null || age_s === undefined ? null : age_s + (performance.now() - at) / 1000
}
