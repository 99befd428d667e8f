// Where we are, from the part of the address behind the #; SeaTunnel's addresses work too.

export const route = $state({ path: [], query: {} })

function read() {
  const [path, query] = location.hash.replace(/^#\/?/, '').split('?')
  const parts = path.split('/').filter(Boolean).map(decoded)
  route.path = parts[0] === 'managers' ? ['workers'] : parts
  route.query = Object.fromEntries(new URLSearchParams(query || ''))
}

function decoded(part) {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

addEventListener('hashchange', read)
read()

export const go = (address) => { location.hash = address }

// Change the query without a new step in the history.
export function replaceQuery(changes) {
  const all = { ...route.query, ...changes }
  const kept = new URLSearchParams(Object.entries(all).filter(([, v]) => v))
  const path = route.path.map(encodeURIComponent).join('/')
  history.replaceState(null, '', `#/${path}${kept.size ? `?${kept}` : ''}`)
  read()
}

export const jobAddress = (id, tab = '') => `#/jobs/${encodeURIComponent(id)}${tab ? `/${tab}` : ''}`
