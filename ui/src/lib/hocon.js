// Write options as HOCON, and put a block into the text of a job.

const PLAIN = /^(list|block|schema|any|type)/
const NUMBER = /^-?\d+(\.\d+)?$/

// The value of an option as the form has it; null leaves it out.
export function value(option, given) {
  const text = String(given ?? '').trim()
  if (text === '' || (option.kind === 'boolean' && text === String(option.default))) return null
  if (option.kind === 'boolean') return text
  if (/^(int|number|duration)$/.test(option.kind) && NUMBER.test(text)) return text
  if (/^list of (string|int|number)/.test(option.kind) && !text.startsWith('[')) return `[${text.split(',').map((t) => item(option.kind, t.trim())).join(', ')}]`
  if (PLAIN.test(option.kind)) return text
  return JSON.stringify(text)
}

const item = (kind, text) => (/(int|number)/.test(kind) && NUMBER.test(text) ? text : JSON.stringify(text))

export function block(plugin, options, given) {
  const lines = options.map((o) => [o.key, value(o, given[o.key])]).filter(([, v]) => v !== null)
  const body = lines.map(([key, v]) => `    ${key}${v.startsWith('{') ? ' ' : ' = '}${v}`).join('\n')
  return `  ${plugin} {\n${body}${body ? '\n' : ''}  }\n`
}

// A new stage goes to the end of its section; a missing section is added.
export function insert(text, role, stage) {
  const begun = text.trim() ? text.replace(/\s*$/, '\n') : 'env { job.name = "my job", job.mode = BATCH }\n'
  const head = new RegExp(`^\\s*${role}\\s*\\{`, 'm').exec(begun)
  const end = head ? closing(begun, head.index + head[0].length) : -1
  if (end < 0) return `${begun}\n${role} {\n${stage}}\n`
  const before = begun.slice(0, end).replace(/[ \t]*$/, '')
  return `${before}${before.endsWith('\n') ? '' : '\n'}${stage}${begun.slice(end)}`
}

// The brace that closes a section, past strings and comments; -1 if there is none.
function closing(text, from) {
  let depth = 1
  for (let i = from; i < text.length; i += 1) {
    if (text.startsWith('"""', i)) { const e = text.indexOf('"""', i + 3); if (e < 0) return -1; i = e + 2 }
    else if (text[i] === '"') { for (i += 1; i < text.length && text[i] !== '"'; i += 1) if (text[i] === '\\') i += 1 }
    else if (text[i] === '#' || text.startsWith('//', i)) { const e = text.indexOf('\n', i); if (e < 0) return -1; i = e }
    else if (text[i] === '{') depth += 1
    else if (text[i] === '}') { depth -= 1; if (!depth) return i }
  }
  return -1
}
