"""All topics, in the order of the page."""

from tests.errors import (
    aggregates,
    arguments,
    buffers,
    constants,
    control_flow,
    functions,
    memory,
    names,
    reductions,
    running,
    storage_aliasing,
    targets,
    tasks,
    types,
)

TOPICS = (
    names.TOPIC,
    constants.TOPIC,
    types.TOPIC,
    control_flow.TOPIC,
    functions.TOPIC,
    aggregates.TOPIC,
    memory.TOPIC,
    reductions.TOPIC,
    tasks.TOPIC,
    buffers.TOPIC,
    storage_aliasing.TOPIC,
    targets.TOPIC,
    arguments.TOPIC,
    running.TOPIC,
)
