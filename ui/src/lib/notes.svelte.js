// Short words about what the user just did.  Errors stay until they are read.

export const notes = $state([])
let number = 0

export function note(text, bad = false) {
  const one = { id: ++number, text, bad }
  notes.push(one)
  if (!bad) setTimeout(() => dismiss(one.id), 6000)
}

export function dismiss(id) {
  const at = notes.findIndex((n) => n.id === id)
  if (at >= 0) notes.splice(at, 1)
}
