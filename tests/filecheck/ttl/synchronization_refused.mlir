// RUN: tlx-opt %s -p ttl-insert-synchronization --split-input-file --verify-diagnostics

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !tile, 2>
!block = tensor<1x1x!tile>

ttl.kernel @no_producer() {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  ttl.compute_thread @compute {
    // expected-error @below {{circular buffer protocol violation: consumer waits indefinitely: no thread pushes to 'a_cb'}}
    %x = ttl.cb_wait %a_cb : !cb -> !block
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !tile, 2>
!block = tensor<1x1x!tile>

ttl.kernel @no_consumer() {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  ttl.datamovement_thread @read {
    // expected-error @below {{circular buffer protocol violation: the blocks of 'a_cb' are never popped: no thread waits for them}}
    %x = ttl.cb_reserve %a_cb : !cb -> !block
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !tile, 2>
!block = tensor<1x1x!tile>

ttl.kernel @too_few_pushes() {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  ttl.datamovement_thread @read {
    affine.for %i = 0 to 3 {
      %x = ttl.cb_reserve %a_cb : !cb -> !block
      ttl.cb_push %a_cb
    }
    ttl.thread_return
  }
  ttl.compute_thread @compute {
    affine.for %i = 0 to 2 {
      affine.for %j = 0 to 2 {
        // expected-error @below {{circular buffer protocol violation: consumer waits indefinitely: it waits for 4 blocks of 'a_cb', the producer pushes 3}}
        // expected-note @below {{corresponding producer at}}
        %x = ttl.cb_wait %a_cb : !cb -> !block
      }
    }
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !tile, 2>
!block = tensor<1x1x!tile>

// Half of the pushes are outside of the loop with the waits: as many, but the second thread waits for b before it
// pops the two blocks that there is room for.
ttl.kernel @circle() {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %b_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  ttl.datamovement_thread @read {
    affine.for %i = 0 to 3 {
      // expected-error @below {{deadlock: 'read', 'compute' wait for each other for ever: let one of them push or pop before it waits, or make a buffer_factor larger}}
      %x = ttl.cb_reserve %a_cb : !cb -> !block
      ttl.cb_push %a_cb
    }
    %y = ttl.cb_reserve %b_cb : !cb -> !block
    ttl.cb_push %b_cb
    ttl.thread_return
  }
  ttl.compute_thread @compute {
    %y = ttl.cb_wait %b_cb : !cb -> !block
    affine.for %i = 0 to 3 {
      %x = ttl.cb_wait %a_cb : !cb -> !block
    }
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !tile, 3>
!block = tensor<1x1x!tile>
!blocks = tensor<2x1x1x!tile>

// The second reserve would begin in the last place and end in the first one.
ttl.kernel @around_the_end() {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=3 : !cb
  ttl.datamovement_thread @read {
    affine.for %i = 0 to 2 {
      // expected-error @below {{circular buffer protocol violation: 2 blocks at once, where the buffer has 1 before its end: buffer_factor must be a multiple of 2}}
      %x = ttl.cb_reserve %a_cb {blocks = 2 : i64} : !cb -> !blocks
      ttl.cb_push %a_cb {blocks = 2 : i64}
    }
    ttl.thread_return
  }
  ttl.compute_thread @compute {
    affine.for %i = 0 to 4 {
      %x = ttl.cb_wait %a_cb : !cb -> !block
    }
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !tile, 2>
!block = tensor<1x1x!tile>

ttl.kernel @used_after_pop() {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %b_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  ttl.compute_thread @compute {
    %x = ttl.cb_wait %a_cb : !cb -> !block
    ttl.cb_pop %a_cb
    // expected-error @below {{circular buffer protocol violation: a block of 'a_cb' is used after it was popped: pop it after its last use}}
    %y = ttl.exp %x : !block -> !block
    %z = ttl.cb_reserve %b_cb : !cb -> !block
    ttl.store %y, %z : !block, !block
    ttl.cb_push %b_cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !tile, 2>
!block = tensor<1x1x!tile>

ttl.kernel @used_after_next_wait() {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %b_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  ttl.compute_thread @compute {
    %x = ttl.cb_wait %a_cb : !cb -> !block
    %y = ttl.cb_wait %a_cb : !cb -> !block
    %z = ttl.cb_reserve %b_cb : !cb -> !block
    // expected-error @below {{circular buffer protocol violation: a block of 'a_cb' is used after the next one is waited for: use it before}}
    %s = ttl.add %x, %y : !block, !block -> !block
    ttl.store %s, %z : !block, !block
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !tile, 2>
!block = tensor<1x1x!tile>

ttl.kernel @two_waits_in_a_row() {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  ttl.compute_thread @compute {
    %x = ttl.cb_wait %a_cb : !cb -> !block
    // expected-error @below {{circular buffer protocol violation: this wait would give the same block of 'a_cb' again: pop the first one before the next wait, or wait for several blocks at once}}
    %y = ttl.cb_wait %a_cb : !cb -> !block
    ttl.cb_pop %a_cb
    ttl.cb_pop %a_cb
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !tile, 2>
!block = tensor<1x1x!tile>

// The pops are in a branch that runs in the second iteration only.
ttl.kernel @two_waits_in_a_loop() {
  %a_cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=2 : !cb
  %c1 = arith.constant 1 : index
  ttl.datamovement_thread @read {
    affine.for %i = 0 to 2 {
      %x = ttl.cb_reserve %a_cb : !cb -> !block
      ttl.cb_push %a_cb
    }
    ttl.thread_return
  }
  ttl.compute_thread @compute {
    affine.for %i = 0 to 2 {
      // expected-error @below {{circular buffer protocol violation: this wait would give the same block again: pop comes before the next wait}}
      %x = ttl.cb_wait %a_cb : !cb -> !block
      %last = arith.cmpi eq, %i, %c1 : index
      scf.if %last {
        ttl.cb_pop %a_cb
        %y = ttl.cb_wait %a_cb : !cb -> !block
        ttl.cb_pop %a_cb
      }
    }
    ttl.thread_return
  }
  ttl.kernel_return
}

// -----

// A hand-made protocol with a semaphore that no thread sets.
ttl.kernel @semaphore() {
  %s = ttl.create_semaphore {initial = 0 : i32} : !ttl.semaphore
  %c1 = arith.constant 1 : i32
  ttl.datamovement_thread @waits {
    // expected-error @below {{deadlock: 'waits' waits for a semaphore for ever}}
    ttl.semaphore_wait_eq %s, %c1
    ttl.thread_return
  }
  ttl.kernel_return
}
