// What the words of the API mean, for colours and for people.

export const LIVING = ['RUNNING', 'PENDING', 'FAILING', 'CANCELING', 'DOING_SAVEPOINT']
export const living = (job) => LIVING.includes(job.status)

const TONES = {
  RUNNING: 'busy', PENDING: 'quiet', FAILING: 'bad', CANCELING: 'late', DOING_SAVEPOINT: 'late',
  FINISHED: 'ok', FAILED: 'bad', CANCELED: 'quiet', SAVEPOINT_DONE: 'ok', DAMAGED: 'bad',
  active: 'busy', stopping: 'late', stopped: 'quiet', failing: 'bad', failed: 'bad', finished: 'ok',
  waiting: 'late', placed: 'quiet', running: 'busy', done: 'ok',
  OK: 'ok', LATE: 'late', STALLED: 'bad', DRAINING: 'late', TROUBLE: 'bad', COMPLETED: 'ok', SUBMITTED: 'quiet', LEADS: 'quiet',
}

export const tone = (word) => TONES[word] || TONES[String(word).toLowerCase()] || 'quiet'

const NAMES = {
  DOING_SAVEPOINT: 'taking savepoint', SAVEPOINT_DONE: 'savepoint taken', CANCELED: 'cancelled',
  CANCELING: 'cancelling',
}

export const said = (word) => NAMES[word] || String(word).toLowerCase()

// What happened, without the stack below it.
export const first = (text) => String(text).split('\n')[0]

// The worst first, then the newest.
export function attention(job) {
  if (living(job)) return { STALLED: 0, LATE: 1 }[job.health] ?? 3
  return job.status === 'DAMAGED' ? 2 : 4
}
