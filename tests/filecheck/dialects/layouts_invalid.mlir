// RUN: tlx-opt %s --split-input-file --verify-diagnostics

// Layouts that do not exist, named at their definition; the last of each kind is right.

// expected-error @below {{sizePerThread has 1 dimensions, the order 2}}
#rank = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>

// -----

// expected-error @below {{each of warpsPerCTA must be a power of two, found 3}}
#warps = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [3], order = [0]}>

// -----

// expected-error @below {{order must be a permutation, found [0, 0]}}
#order = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 0]}>

// -----

// expected-error @below {{the CGALayout must permute the bits of the tiles, up to zero bases, found [2]}}
#cga = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0], CGALayout = [[2]]}>

// -----

#right = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0], CGALayout = [[1], [0]]}>

// -----

#line = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// expected-error @below {{the parent of a slice needs at least two dimensions, found 1}}
#slice = #ttg.slice<{dim = 0, parent = #line}>

// -----

#plane = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
// expected-error @below {{dimension 2 is none of the 2 of the parent}}
#slice = #ttg.slice<{dim = 2, parent = #plane}>

// -----

// expected-error @below {{versionMajor must be 2 (mma.sync) or 3 (wgmma), found 1}}
#mma = #ttg.nvidia_mma<{versionMajor = 1, warpsPerCTA = [1, 1], instrShape = [16, 8]}>

// -----

#mma = #ttg.nvidia_mma<{versionMajor = 2, warpsPerCTA = [1, 1], instrShape = [16, 8]}>
// expected-error @below {{opIdx must be 0 or 1, found 2}}
#operand = #ttg.dot_op<{opIdx = 2, parent = #mma, kWidth = 2}>

// -----

#mma = #ttg.nvidia_mma<{versionMajor = 2, warpsPerCTA = [1, 1], instrShape = [16, 8]}>
// expected-error @below {{the operand of an mma of version 2 needs a kWidth}}
#operand = #ttg.dot_op<{opIdx = 0, parent = #mma}>

// -----

#mma = #ttg.nvidia_mma<{versionMajor = 3, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
// expected-error @below {{only operand 0 of a wgmma may be in registers, found opIdx 1}}
#operand = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>

// -----

#plane = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
// expected-error @below {{a blocked parent takes no kWidth, found 4}}
#operand = #ttg.dot_op<{opIdx = 1, parent = #plane, kWidth = 4}>

// -----

#mma = #ttg.nvidia_mma<{versionMajor = 3, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#operand = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>

// -----

// expected-error @below {{a linear layout must permute the bits of the elements, up to zero bases, found [1] twice}}
#twice = #ttg.linear<{register = [[1]], lane = [[1]], warp = [], block = []}>

// -----

// expected-error @below {{up to zero bases, found [4]}}
#hole = #ttg.linear<{register = [[1]], lane = [[4]], warp = [], block = []}>

// -----

#right = #ttg.linear<{register = [[0]], lane = [[1]], warp = [[2]], block = [[0]]}>

// -----

// expected-error @below {{a register basis must move along one dimension, found [1, 1]}}
#generic = #ttg.generic_linear<{register = [[1, 1]], lane = [[0, 1]], warp = [], block = []}>

// -----

// expected-error @below {{each interval must be a power of two, found 3}}
#padded = #ttg.padded_shared<[3:+2] {order = [0], shape = [64]}>

// -----

// expected-error @below {{each padding must be a power of two, found 0}}
#padded = #ttg.padded_shared<[2:+0] {order = [0], shape = [64]}>

// -----

// expected-error @below {{the intervals must differ, found [2, 2]}}
#padded = #ttg.padded_shared<[2:+1, 2:+4] {order = [0], shape = [64]}>

// -----

// expected-error @below {{no two offsets may hold one element}}
#padded = #ttg.padded_shared<[2:+1] {offset = [[0]], block = []}>

// -----

// expected-error @below {{the order of 'ttg.padded_shared' must name each of the 1 dimensions once}}
#padded = #ttg.padded_shared<[2:+1] {order = [1, 0], shape = [64]}>

// -----

#padded = #ttg.padded_shared<[2:+1, 4:+2] {offset = [[0, 1], [1, 0]], block = [[2, 0]]}>

// -----

// expected-error @below {{no two offsets may hold one element, up to zero bases}}
#shared = #ttg.shared_linear<{offset = [[1], [1]]}, alignment = 16>

// -----

// expected-error @below {{the alignment must be a power of two, found 24}}
#shared = #ttg.shared_linear<{offset = [[1], [2]]}, alignment = 24>

// -----

// expected-error @below {{swizzlingByteWidth must be 0, 32, 64 or 128, found 96}}
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 96, transposed = false, elementBitWidth = 16}>

// -----

// expected-error @below {{fp4Padded needs colStride 1, found 2}}
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 2, fp4Padded = true>

// -----

// expected-error @below {{the CGALayout begins with [1, 0], found [0, 1]}}
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1, CGALayout = [[0, 1]], twoCTAs = true>

// -----

// Layouts that do not fit a buffer.

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
// expected-error @below {{the layout has 2 dimensions, the buffer 4}}
!rank = !ttg.memdesc<2x2x64x64xf16, #shared, #smem>

// -----

#shared = #ttg.shared_linear<{offset = [[1], [2]]}, alignment = 16>
#smem = #ttg.shared_memory
// expected-error @below {{the layout has 4 elements along dimension 0, the allocation 8}}
!size = !ttg.memdesc<8xf16, #shared, #smem>

// -----

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
// expected-error @below {{a buffer needs at least one dimension}}
!none = !ttg.memdesc<f16, #shared, #smem>

// -----

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
// expected-error @below {{every dimension of a buffer has at least one element, found [64, 0]}}
!empty = !ttg.memdesc<64x0xf16, #shared, #smem>

// -----

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#smem = #ttg.shared_memory
// expected-error @below {{a layout of registers can't be that of a buffer: blocked}}
!registers = !ttg.memdesc<64xf16, #blocked, #smem>

// -----

#scales = #ttng.tensor_memory_scales_encoding<>
// expected-error @below {{scales have 8 bits, found 16}}
!scales = !ttg.memdesc<128x4xf16, #scales, #ttng.tensor_memory>

// -----

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
!right = !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable, 4x64x64>

// -----

// expected-error @below {{'ttg.nvidia_mma' of several CTAs needs CGALayout, 'CTASplitNum' is not read}}
#mma = #ttg.nvidia_mma<{versionMajor = 2, warpsPerCTA = [1, 1], CTASplitNum = [2, 1], CTAOrder = [1, 0], instrShape = [16, 8]}>
