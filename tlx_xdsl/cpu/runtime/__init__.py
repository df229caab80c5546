"""Kernels as machine code of this CPU: specialised, compiled, kept on disk, and launched over threads.

- `arguments`: from the values of a launch to the key of its specialisation and the slots of its arguments;
- `build`: from a kernel's source to an object, through the cache on disk (`cache`);
- `program`: an object in this process, and its runs over the pool of threads (`pool`);
- `launch`: `kernel[grid](...)` and `kernel.bind(...)`; `kernel`: the kernel that offers them;
- `printing`: what a run prints;
- `autotune`: configurations that are chosen by their times; `measure`: times.

llvmlite is imported when a kernel is compiled or loaded, not with this package.
"""
