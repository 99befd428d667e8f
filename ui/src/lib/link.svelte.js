// The page's link to the cluster: one token, all masters, whichever answers.
//
// The page may outlive the master it came from.  Every master is asked in turn until one answers;
// reads are simply asked again, orders are repeated under one token, so that they happen once.

const KEY = 'holdfast.token'
const OWN = new URL('.', location.href.split('#')[0]).href.replace(/\/$/, '')
const ASK_MS = 15000
const ORDER_MS = 45000
const TICK_MS = 1000
const HOME_MS = 10000

export const link = $state({
  token: sessionStorage.getItem(KEY) || '',
  me: null,
  masters: [OWN],
  at: OWN,
  own: OWN,
  state: 'new', // new, up, leaderless, lost
  lostSince: 0,
  why: '',
  leader: '',
  term: 0,
  tick: 0,
  now: Date.now() / 1000, // the cluster's date, once a second
  refused: '',
})

let skew = 0
const mono = () => performance.now()

// No master answered.
export class Gone extends Error {}

// A master answered, and said no.
export class Refused extends Error {
  constructor(status, problem) {
    super(problem.message || `The master answered ${status}.`)
    this.status = status
    this.code = problem.code || ''
    this.retryable = Boolean(problem.retryable)
    this.mistakes = problem.mistakes || []
  }
}

export async function ask(path, { method = 'GET', body, master = link.at, timeout = ASK_MS } = {}) {
  const headers = { Authorization: `Bearer ${link.token}` }
  if (body !== undefined) headers['Content-Type'] = 'application/json'
  let answer, text
  try {
    answer = await fetch(master + path, {
      method, headers, body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(timeout), credentials: 'omit', cache: 'no-store',
    })
    text = await answer.text()
  } catch (error) {
    throw new Gone(error.name === 'TimeoutError' ? `${master} does not answer` : `${master} cannot be reached`)
  }
  const dated = Date.parse(answer.headers.get('date') || '')
  if (dated) noteDate(dated)
  const data = text ? parse(text) : {}
  if (answer.ok) return data
  if (answer.status === 401) signOut('The token is not valid, or no longer valid.')
  throw new Refused(answer.status, data)
}

function parse(text) {
  try {
    return JSON.parse(text)
  } catch {
    return { message: text.slice(0, 300) }
  }
}

// Dates in answers are the master's; a browser whose clock is wrong must not show wrong ages.
function noteDate(dated) {
  const off = dated + 500 - Date.now()
  skew = Math.abs(off) > 3000 ? off : 0
}

export const clusterNow = () => (Date.now() + skew) / 1000

export async function signIn(token) {
  link.token = token.trim()
  link.refused = ''
  try {
    await learn()
    sessionStorage.setItem(KEY, link.token)
  } catch (error) {
    if (!(error instanceof Refused && error.status === 401)) link.refused = error.message
    link.token = ''
    link.me = null
  }
}

export function signOut(why = '') {
  sessionStorage.removeItem(KEY)
  link.token = ''
  link.me = null
  link.refused = why
  link.state = 'new'
}

async function learn() {
  link.me = await ask('/api/me')
  const known = (link.me.masters || []).map((u) => u.replace(/\/$/, ''))
  link.masters = [...new Set([link.own, ...known])]
}

export const may = (permission) => Boolean(link.me && link.me.permissions.includes(permission))

const sleep = (ms) => new Promise((done) => setTimeout(done, ms))

function visible() {
  if (!document.hidden) return Promise.resolve()
  return new Promise((done) => {
    const look = () => {
      if (document.hidden) return
      document.removeEventListener('visibilitychange', look)
      done()
    }
    document.addEventListener('visibilitychange', look)
  })
}

// Follow the cluster for as long as the page is open.
export async function follow() {
  let since = -1, failed = 0
  setInterval(() => { link.now = clusterNow() }, TICK_MS)
  for (;;) {
    await visible()
    if (!link.token) { await sleep(100); continue }
    const begun = mono()
    try {
      if (!link.me) await learn()
      const answer = await ask(`/api/changes?since=${since}&wait_s=10`)
      // A standby without a leader would only answer once it leads itself; ask it again and again.
      since = answer.term ? answer.change : -1
      failed = 0
      received(answer)
      await home()
      await sleep(Math.max(0, TICK_MS - (mono() - begun)))
    } catch (error) {
      if (error instanceof Refused && error.status === 401) continue
      since = -1
      failed += 1
      missed(error)
      turn()
      await sleep(Math.min(2000, 150 * failed))
    }
  }
}

function received(answer) {
  const back = link.state === 'lost' || link.state === 'leaderless'
  link.state = answer.term ? 'up' : 'leaderless'
  if (answer.term) { link.term = answer.term; link.lostSince = 0; link.why = '' }
  else if (!link.lostSince) link.lostSince = clusterNow()
  if (back && link.state === 'up') learn().catch(() => {})
  link.tick += 1
}

function missed(error) {
  if (!link.lostSince) link.lostSince = clusterNow()
  const leaderless = error instanceof Refused && error.code === 'master.no_leader'
  link.state = leaderless ? 'leaderless' : 'lost'
  link.why = error.message
}

// Go back to the master that this page came from once it answers again.
let probed = 0
async function home() {
  if (link.at === link.own || mono() - probed < HOME_MS) return
  probed = mono()
  try {
    await ask('/api/me', { master: link.own, timeout: 2000 })
    link.at = link.own
  } catch (error) {
    if (!(error instanceof Gone)) throw error
  }
}

function turn() {
  const next = link.masters.indexOf(link.at) + 1
  link.at = link.masters[next % link.masters.length]
}

// Give an order, at whichever master answers.  The same order twice is one order.
export async function order(path, body) {
  const until = mono() + ORDER_MS
  for (;;) {
    try {
      return await ask(path, { method: 'POST', body })
    } catch (error) {
      const again = error instanceof Gone || (error instanceof Refused && error.retryable)
      if (!again || mono() > until) throw error
      if (error instanceof Gone) missed(error)
      turn()
      await sleep(500)
    }
  }
}

export const newToken = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, '0')).join('')
