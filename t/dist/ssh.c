/* SPDX-License-Identifier: Apache-2.0 */
/* Asks another machine for its key by ssh, which is a script here: the key is found, a
 * refusal has its reason, and an ssh that prints nothing is ended in time. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dist/wire/keys.h"
#include "dist/wire/ssh.h"
#include "t/data/fixture.h"
#include "t/tap.h"

#define KEY "0123456789abcdefghijABCDEFGHIJ0123456789"

static const double LONG = 60; /* seconds that no answer takes */

/* From here on ssh is SCRIPT. */
static void
ssh_is(const char *script)
{
    char text[1024];
    snprintf(text, sizeof text, "#!/bin/sh\n%s\n", script);
    if (chmod(write_file("ssh", text, strlen(text), false), 0755) != 0)
        bail("no script");
}

/* Why there is no key; "" where there is one, and it is KEY. */
static const char *
refused(struct et_ctx *cx, const char *host, double seconds)
{
    char key[ETD_KEY_TEXT] = "";
    if (etd_ssh_key(cx, host, seconds, key) != ET_OK)
        return take_error(cx);
    return strcmp(key, KEY) == 0 ? "" : "another key";
}

static void
test_answers(struct et_ctx *cx)
{
    ssh_is("echo " KEY);
    is_str(refused(cx, "lab", LONG), "", "the key that the other machine prints");
    ssh_is("echo Welcome to lab; echo; printf '" KEY "\\r\\n'");
    is_str(refused(cx, "me@lab", LONG), "", "also behind what its login says");
    ssh_is("echo \"$*\" >words; echo " KEY);
    is_str(refused(cx, "lab", LONG), "", "it is asked for");
    FILE *f = fopen("words", "r");
    char words[100] = "";
    if (!f || !fgets(words, sizeof words, f))
        bail("ssh was given no words");
    fclose(f);
    is_str(words, "-T -- lab etude worker key\n", "by the command that prints it");
}

static void
test_refusals(struct et_ctx *cx)
{
    ssh_is("echo no key here; exit 1");
    is_str(refused(cx, "lab", LONG), "lab says no key", "an answer without a key");
    ssh_is("exit 255");
    is_str(refused(cx, "lab", LONG), "ssh does not reach lab",
           "a machine that ssh does not reach");
    ssh_is("yes 0123456789abcdefghijABCDEFGHIJ012345678");
    is_str(refused(cx, "lab", LONG), "lab says no key",
           "an answer without an end is cut off");
    is_str(refused(cx, "-oProxyCommand=x", LONG),
           "ssh://-oProxyCommand=x names no host", "an option is no host");
    setenv("PATH", "/nonexistent", 1);
    is_str(refused(cx, "lab", LONG), "cannot run ssh: No such file or directory",
           "a machine without ssh");
}

/* It notes how it ended: by itself after many seconds, or by a signal. */
static void
test_silence(struct et_ctx *cx)
{
    ssh_is("trap 'echo ended >how; exit' TERM\n"
           "i=0; while [ $i -lt 100 ]; do sleep .1; i=$((i + 1)); done\n"
           "echo 'waited for' >how");
    is_str(refused(cx, "lab", 0.5), "lab gave no answer in 0 s",
           "an ssh that says nothing");
    FILE *f = fopen("how", "r");
    char how[100] = "";
    if (!f || !fgets(how, sizeof how, f))
        bail("ssh goes on");
    fclose(f);
    is_str(how, "ended\n", "is ended");
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    const char *old = getenv("PATH");
    char path[4096];
    if (chdir(scratch_folder()) != 0)
        bail("no folder");
    snprintf(path, sizeof path, "%s:%s", scratch_folder(), old ? old : "/bin:/usr/bin");
    setenv("PATH", path, 1);
    test_answers(cx);
    test_silence(cx);
    test_refusals(cx);
    et_ctx_free(&cx);
    return done();
}
