// Light or dark: the system's wish, or the user's own, which this browser keeps.

const KEY = 'holdfast.theme'

export const theme = $state({ chosen: localStorage.getItem(KEY) || 'system' })

export function applyTheme() {
  const root = document.documentElement
  if (theme.chosen === 'system') root.removeAttribute('data-theme')
  else root.setAttribute('data-theme', theme.chosen)
}

export function nextTheme() {
  const order = ['system', 'light', 'dark']
  theme.chosen = order[(order.indexOf(theme.chosen) + 1) % order.length]
  localStorage.setItem(KEY, theme.chosen)
  applyTheme()
}
