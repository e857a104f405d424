/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of the files that say who is let in and where others are; see replay.h.
 *
 * Whatever the bytes: no crash, nothing read beyond them, and where a line is wrong
 * nobody is in the list. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "dist/wire/keys.h"
#include "t/fuzz/replay.h"
#include "t/tap.h"

static int accepted;
static struct etd_authorized_list keys;
static struct etd_worker_list workers;

static void
need(bool holds)
{
    if (!holds)
        abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char why[128] = "";
    int line = etd_authorized_parse((const char *)data, size, &keys, why, sizeof why);
    need(line >= 0 && keys.n <= ETD_KEYS_MOST && (line == 0 || keys.n == 0));
    need((line > 0) == (why[0] != '\0'));
    for (int i = 0; i < keys.n; i++)
        need(etd_key_is(keys.key[i].key) && keys.key[i].comment[0] &&
             strlen(keys.key[i].comment) < ETD_COMMENT);
    accepted += keys.n;
    line = etd_workers_parse((const char *)data, size, &workers, why, sizeof why);
    need(line >= 0 && workers.n <= ETD_WORKERS_MOST && (line == 0 || workers.n == 0));
    for (int i = 0; i < workers.n; i++)
        need(workers.worker[i].name[0] && workers.worker[i].address[0]);
    accepted += workers.n;
    return 0;
}

#ifndef ET_FUZZER
int
main(void)
{
    fuzz_replay("keys-seeds", "\n#:{}\"=, -0");
    ok(accepted > 10, "some of them let somebody in (%d)", accepted);
    return done();
}
#endif
