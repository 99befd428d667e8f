// Where the stages of one pipeline stand.  Stages of a task stay together, in one frame.
import dagre from '@dagrejs/dagre'

export const WIDTH = 178
export const HEIGHT = 58
const PAD = 12
const HEAD = 22

export function layout(stages, tasks, direction) {
  const graph = new dagre.graphlib.Graph({ compound: true })
  graph.setGraph({ rankdir: direction, nodesep: 22, ranksep: 44, marginx: PAD + 4, marginy: PAD + HEAD + 2 })
  graph.setDefaultEdgeLabel(() => ({}))
  const here = new Set(stages.map((s) => s.id))
  for (const task of tasks) graph.setNode(`task ${task.id}`, {})
  for (const stage of stages) graph.setNode(stage.id, { width: WIDTH, height: HEIGHT })
  for (const task of tasks) for (const id of task.stages) if (here.has(id)) graph.setParent(id, `task ${task.id}`)
  for (const stage of stages) for (const from of stage.inputs) if (here.has(from)) graph.setEdge(from, stage.id)
  dagre.layout(graph)
  const at = Object.fromEntries(stages.map((s) => [s.id, graph.node(s.id)]))
  const frames = tasks.filter((t) => t.stages.some((id) => at[id])).map((t) => ({ id: t.id, ...frame(t.stages.map((id) => at[id]).filter(Boolean)) }))
  const edges = graph.edges().map((e) => ({ from: e.v, to: e.w, path: curve(at[e.v], at[e.w], direction) }))
  const left = Math.min(...frames.map((f) => f.x), ...stages.map((s) => at[s.id].x - WIDTH / 2))
  const top = Math.min(...frames.map((f) => f.y), ...stages.map((s) => at[s.id].y - HEIGHT / 2))
  const right = Math.max(...frames.map((f) => f.x + f.width), ...stages.map((s) => at[s.id].x + WIDTH / 2))
  const bottom = Math.max(...frames.map((f) => f.y + f.height), ...stages.map((s) => at[s.id].y + HEIGHT / 2))
  return { at, frames, edges, left: left - 1, top: top - 1, width: right - left + 2, height: bottom - top + 2 }
}

function frame(nodes) {
  const left = Math.min(...nodes.map((n) => n.x)) - WIDTH / 2 - PAD
  const top = Math.min(...nodes.map((n) => n.y)) - HEIGHT / 2 - HEAD
  const right = Math.max(...nodes.map((n) => n.x)) + WIDTH / 2 + PAD
  const bottom = Math.max(...nodes.map((n) => n.y)) + HEIGHT / 2 + PAD
  return { x: left, y: top, width: right - left, height: bottom - top }
}

// From the middle of one side to the middle of the other: reads better than clipped lines.
function curve(a, b, direction) {
  if (direction === 'TB') {
    const [x, y, u, v] = [a.x, a.y + HEIGHT / 2, b.x, b.y - HEIGHT / 2]
    const m = (y + v) / 2
    return `M${x},${y}C${x},${m} ${u},${m} ${u},${v}`
  }
  const [x, y, u, v] = [a.x + WIDTH / 2, a.y, b.x - WIDTH / 2, b.y]
  const m = (x + u) / 2
  return `M${x},${y}C${m},${y} ${m},${v} ${u},${v}`
}
