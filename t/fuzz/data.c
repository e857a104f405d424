/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of the data files' parsers; see replay.h. The input's first byte says
 * which: 0 IDX, the rest is the file; 1 CIFAR, then label bytes and the file's size; 2
 * tokens, then their width, the file's size and its header's.
 *
 * Whatever the bytes: no crash; what is accepted accounts for every byte, what is not
 * has a sentence. */
#include <stdlib.h>
#include <string.h>

#include "core/data/cifar.h"
#include "core/data/idx.h"
#include "core/data/token_file.h"
#include "t/fuzz/replay.h"
#include "t/tap.h"

enum { CIFAR_PIXELS = 3 * 32 * 32 };

static int accepted[3];

static void
need(bool holds)
{
    if (!holds)
        abort();
}

static bool
judge(int kind, et_status status, const struct et_error *why)
{
    need(status == ET_OK || (status == ET_EFORMAT && why->message[0]));
    accepted[kind] += status == ET_OK;
    return status == ET_OK;
}

static void
try_idx(const uint8_t *data, size_t size)
{
    struct et_error why = {0};
    struct eti_idx idx;
    if (!judge(0, eti_idx_parse(data, (int64_t)size, &idx, &why), &why))
        return;
    need(idx.ndim >= 1 && idx.ndim <= 4 && idx.shape[0] > 0 && idx.item_bytes > 0);
    need(idx.data - data + idx.shape[0] * idx.item_bytes == (int64_t)size);
}

static void
try_cifar(const uint8_t *data, size_t size)
{
    struct et_error why = {0};
    int64_t n, records;
    if (size < 1 + sizeof n)
        return;
    int label_bytes = 1 + data[0] % 2;
    memcpy(&n, data + 1, sizeof n);
    if (n < 0) /* no file's size */
        return;
    if (judge(1, eti_cifar_count(n, label_bytes, &records, &why), &why))
        need(records > 0 && records * (label_bytes + CIFAR_PIXELS) == n);
}

static void
try_tokens(const uint8_t *data, size_t size)
{
    struct et_error why = {0};
    int64_t n, header, tokens;
    if (size < 1 + sizeof n + sizeof header)
        return;
    int width = 1 + data[0] % 2;
    memcpy(&n, data + 1, sizeof n);
    memcpy(&header, data + 1 + sizeof n, sizeof header);
    if (n < 0 || header < 0)
        return;
    if (judge(2, eti_token_count(n, header, width, &tokens, &why), &why))
        need(header + tokens * width == n);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const parsers[])(const uint8_t *, size_t) = {try_idx, try_cifar,
                                                               try_tokens};
    if (size > 0)
        parsers[data[0] % 3](data + 1, size - 1);
    return 0;
}

#ifndef ET_FUZZER
int
main(void)
{
    static const char *const names[] = {"IDX", "CIFAR", "token"};
    /* Kinds, widths, the type of IDX files, the bytes of sizes. */
    static const char indicators[] = "\1\2\3\4\10\34\177\200\377";
    fuzz_replay("data-seeds", indicators);
    for (int i = 0; i < 3; i++)
        ok(accepted[i] > 1, "some damaged copies are still %s files (%d)", names[i],
           accepted[i]);
    return done();
}
#endif
