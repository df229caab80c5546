"""The texts that the C launcher for CPUs is made of. `$name` begins all names; cpu_launcher fills the other places."""

from string import Template

HEADER = Template("""\
/*
$about
 *
 * Link with ${name}.o, ${name}.c and the C library's mathematics (-lm).
 *
 * Arguments:
$arguments
 *
 * Each function returns 0, or a number of which ${name}_error() says in words what it means: positive where an
 * assertion of the kernel has failed, negative where the call has run nothing.
 */
#ifndef $guard
#define $guard

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Runs all programs of a grid on the calling thread. */
int ${name}_launch(
    $parameters);

/* A launch that several threads share. */
struct ${name}_programs {
    int64_t next, total, chunk; /* programs: the first that is not taken, all, and how many a thread takes at once */
    int32_t grid[3];
    int32_t status;
    int64_t failed; /* the program whose assertion has failed, counted along x first, if status is not 0 */
    uint64_t arguments[$slots];
};

/* Fills *programs, which holds until each thread has returned from ${name}_work(). */
int ${name}_prepare(
    struct ${name}_programs *programs, $parameters);

/* Runs programs until none is left: for any number of threads at once. */
int ${name}_work(struct ${name}_programs *programs);

/* What a number that is not 0 means: `file:line:column: message` for an assertion. */
const char *${name}_error(int status);

/* The machine code in ${name}.o, which ${name}_work() calls; `scratch` is aligned to $alignment bytes. */
enum { ${name}_scratch_bytes = $scratch_bytes };
int32_t ${name}_run(const void *arguments, void *programs, void *scratch);

#ifdef __cplusplus
}
#endif

#endif
""")

SOURCE = Template("""\
/* Launches the kernel of ${name}.h; written by tlx_xdsl. */
#include "${name}.h"

$includes
$prints/* What a launch refuses, by the negative of its number; then the assertions of the kernel. */
static const char *const refusals[] = {
    $refusals,
};
static const char *const assertions[] = {
    $assertions,
};

const char *${name}_error(int status)
{
    if (status < 0 && (size_t)-(int64_t)status < sizeof refusals / sizeof *refusals)
        return refusals[-status];
    if (status > 0 && (size_t)status < sizeof assertions / sizeof *assertions)
        return assertions[status];
    return status == 0 ? "no error" : "an unknown error";
}

int ${name}_prepare(
    struct ${name}_programs *programs, $parameters)
{
    uint64_t plane;
$cpu_check    if (gridX > INT32_MAX || gridY > INT32_MAX || gridZ > INT32_MAX)
        return -$bad_grid;
    plane = (uint64_t)gridX * gridY;
    if (gridZ != 0 && plane > (uint64_t)INT64_MAX / gridZ)
        return -$bad_grid;
$checks    memset(programs, 0, sizeof *programs);
    programs->total = (int64_t)(plane * gridZ);
    /* So few that taking them costs nothing, so many that all threads end at about once. */
    programs->chunk = programs->total / $chunks + 1;
    programs->grid[0] = (int32_t)gridX;
    programs->grid[1] = (int32_t)gridY;
    programs->grid[2] = (int32_t)gridZ;
$stores    return 0;
}

$work
int ${name}_launch(
    $parameters)
{
    struct ${name}_programs programs;
    int status = ${name}_prepare(
        &programs, $passed);
    return status != 0 ? status : ${name}_work(&programs);
}
""")

WORK = Template("""\
int ${name}_work(struct ${name}_programs *programs)
{
    return ${name}_run(programs->arguments, programs, NULL);
}
""")

WORK_WITH_SCRATCH = Template("""\
int ${name}_work(struct ${name}_programs *programs)
{
    int status;
    char *memory = (char *)malloc(${name}_scratch_bytes + $alignment);
    if (memory == NULL)
        return -$no_memory;
    status = ${name}_run(programs->arguments, programs, memory + $alignment - (uintptr_t)memory % $alignment);
    free(memory);
    return status;
}
""")

CPU_CHECK = Template("""\
#if defined(__GNUC__) && defined(__x86_64__)
    if ($lacks)
        return -$wrong_cpu;
#endif
""")

SVE_CHECK = Template("""\
#if defined(__linux__) && defined(__aarch64__)
    {
        int bytes = prctl(51, 0, 0, 0, 0); /* PR_SVE_GET_VL */
        if (bytes < 0 || (bytes & 0xffff) < $bytes)
            return -$wrong_cpu;
    }
#endif
""")

PRINTS = Template("""\
#if defined(__cplusplus)
#define TLX_THREAD_LOCAL thread_local
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define TLX_THREAD_LOCAL _Thread_local
#elif defined(__GNUC__)
#define TLX_THREAD_LOCAL __thread
#else
#define TLX_THREAD_LOCAL
#endif

/* The line that a thread has begun: those of several threads do not mix. */
static TLX_THREAD_LOCAL char line[32];

#ifdef __cplusplus
extern "C" {
#endif

$functions
void ${name}_printNewline(void);
void ${name}_printNewline(void)
{
    puts(line);
}

#ifdef __cplusplus
}
#endif

""")

PRINT = Template("""\
void ${name}_$function($type value);
void ${name}_$function($type value)
{
    snprintf(line, sizeof line, "%" $format, value);
}
""")
