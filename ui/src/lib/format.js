// Numbers, sizes and times as people read them.  Exact values belong into a title.

const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 })
const BIG = [[1e12, 'T'], [1e9, 'G'], [1e6, 'M']]

export function count(n) {
  if (n === null || n === undefined) return '–'
  for (const [size, name] of BIG) if (Math.abs(n) >= size * 10) return `${(n / size).toFixed(1)} ${name}`
  return whole.format(n)
}

export const exact = (n) => (n === null || n === undefined ? 'not known' : whole.format(n))

export function rate(n) {
  if (!n) return '0'
  if (n < 10) return n.toFixed(1)
  return count(n)
}

export function bytes(n) {
  if (n === null || n === undefined) return '–'
  const names = ['B', 'kB', 'MB', 'GB', 'TB', 'PB']
  let size = n, at = 0
  while (size >= 1000 && at < names.length - 1) { size /= 1000; at += 1 }
  return `${at && size < 100 ? size.toFixed(1) : Math.round(size)} ${names[at]}`
}

// How long: two units at most.
export function span(seconds) {
  if (seconds === null || seconds === undefined) return '–'
  const s = Math.max(0, Math.floor(seconds))
  if (s < 60) return `${s} s`
  if (s < 3600) return two(Math.floor(s / 60), 'min', s % 60, 's')
  if (s < 86400) return two(Math.floor(s / 3600), 'h', Math.floor((s % 3600) / 60), 'min')
  return two(Math.floor(s / 86400), 'd', Math.floor((s % 86400) / 3600), 'h')
}

const two = (a, unit, b, small) => (b ? `${a} ${unit} ${b} ${small}` : `${a} ${unit}`)

// How long something short took.
export function took(seconds) {
  if (seconds === null || seconds === undefined) return '–'
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`
  if (seconds < 60) return `${seconds.toFixed(1)} s`
  return span(seconds)
}

const pad = (n) => String(n).padStart(2, '0')

export function clock(at_s) {
  const d = new Date(at_s * 1000)
  return `${pad(d.getHours())}:${pad(d.getMinutes())}:${pad(d.getSeconds())}`
}

export function date(at_s) {
  const d = new Date(at_s * 1000)
  return `${d.getFullYear()}-${pad(d.getMonth() + 1)}-${pad(d.getDate())} ${clock(at_s)}`
}

export const zone = () => Intl.DateTimeFormat().resolvedOptions().timeZone

export const plural = (n, one, many = `${one}s`) => `${whole.format(n)} ${n === 1 ? one : many}`
