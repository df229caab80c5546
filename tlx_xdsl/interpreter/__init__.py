"""Run IR of any stage on numpy, with real memory, real concurrency and real asynchronous engines.

`plan.make_plan` prepares a module, `arguments.bind` its arguments, and `workers.run_launch` runs its programs;
`tlx_xdsl.interpret` does all that for a kernel. How it works: docs/interpreter.md.
"""
