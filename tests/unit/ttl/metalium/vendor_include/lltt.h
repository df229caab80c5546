// Stand-in for the vendor compiler's header of replayed instructions: declarations, for syntax only.
#pragma once
#include <cstdint>

namespace lltt {
enum ExecBool : bool { NoExec, Exec };
template <ExecBool E = NoExec>
void record(unsigned start, unsigned length);
void replay(unsigned start, unsigned length);
constexpr std::uint32_t replay_insn(unsigned, unsigned) { return 0; }
}  // namespace lltt
