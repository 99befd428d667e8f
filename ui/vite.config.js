import { createHash } from 'node:crypto'
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { svelte } from '@sveltejs/vite-plugin-svelte'

const OUT = process.env.HOLDFAST_UI_OUT || '../holdfast/ui'
const SOURCES = ['index.html', 'package.json', 'package-lock.json', 'svelte.config.js', 'vite.config.js', 'public', 'src']

// What the assets were built from, beside them: a test compares it with the sources, without npm.
function fingerprint() {
  return {
    name: 'fingerprint',
    closeBundle() {
      const files = SOURCES.flatMap(within).sort()
      const whole = createHash('sha256')
      for (const file of files) whole.update(`${file}\n${createHash('sha256').update(readFileSync(file)).digest('hex')}\n`)
      writeFileSync(join(OUT, 'SOURCES'), `${whole.digest('hex')}\n`)
    },
  }
}

function within(path) {
  if (/\.\w+$/.test(path)) return [path]
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((e) => e.isFile())
    .map((e) => join(e.parentPath, e.name).replaceAll('\\', '/'))
}

// Relative addresses, so that a master behind a context path serves the same files.  The polyfill
// for module preloads would be an inline script, which the page's content policy forbids.
export default {
  base: './',
  plugins: [svelte(), fingerprint()],
  build: {
    outDir: OUT,
    emptyOutDir: true,
    target: 'es2022',
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
  },
}
