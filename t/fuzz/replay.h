/* SPDX-License-Identifier: Apache-2.0 */
/* replay.h: what a fuzz target does without a fuzzer: reads its seeds, and damaged
 * copies of each. With libFuzzer: clang -fsanitize=fuzzer,address -DET_FUZZER on the
 * target and the libraries, without replay.c. */
#ifndef ETUDE_T_FUZZ_REPLAY_H
#define ETUDE_T_FUZZ_REPLAY_H

#include <stddef.h>
#include <stdint.h>

/* The target: returns 0, aborts where something is wrong. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One test for each file of t/fuzz/FOLDER. Damage puts bytes of INDICATORS, those that
 * mean something to the reader, among others; where the end of a line is one of them,
 * lines also come again or are left out. */
void fuzz_replay(const char *folder, const char *indicators);

#endif
