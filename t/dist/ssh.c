/* SPDX-License-Identifier: Apache-2.0 */
/* Asks another machine for its key by ssh, which is a script here: the key is found, a
 * refusal has its reason, and an ssh that prints nothing is ended in time. The other
 * machine's side of a conversation by ssh: messages on two pipes. */
#include "config.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dist/wire/keys.h"
#include "dist/wire/ssh.h"
#include "dist/worker/worker.h"
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

/* ---- the other side: a session on two pipes ---- */

enum { PREFIX = 4 };

struct side {
    pid_t pid;
    int to, from;
    char bytes[ETD_CHUNK_BYTES]; /* the last message */
    struct etd_frame f;
};

/* It runs PROGRAM for recipes that it is sent. */
static void
side_begin(struct side *s, const char *program)
{
    int in[2], out[2];
    if (pipe(in) != 0 || pipe(out) != 0)
        bail("no pipe");
    s->pid = fork();
    if (s->pid == 0) {
        struct et_ctx *cx;
        close(in[1]);
        close(out[0]);
        if (et_ctx_new(&cx) != ET_OK)
            _exit(126);
        et_status status =
            etd_worker_relay(cx, program, scratch_folder(), in[0], out[1]);
        et_ctx_free(&cx);
        _exit(status == ET_OK ? 0 : 1);
    }
    close(in[0]);
    close(out[1]);
    s->to = in[1];
    s->from = out[0];
}

/* How it has ended, once nothing more is sent. */
static int
side_end(struct side *s)
{
    int status = -1;
    if (s->to >= 0)
        close(s->to);
    waitpid(s->pid, &status, 0);
    close(s->from);
    return status;
}

static void
write_whole(int fd, const char *bytes, size_t n)
{
    for (ssize_t w; n > 0; bytes += w, n -= (size_t)w)
        if ((w = write(fd, bytes, n)) <= 0)
            bail("the other side takes nothing");
}

static bool
read_whole(int fd, char *bytes, size_t n)
{
    for (ssize_t r; n > 0; bytes += r, n -= (size_t)r)
        if (poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 20000) != 1)
            bail("the other side says nothing");
        else if ((r = read(fd, bytes, n)) <= 0)
            return false;
    return true;
}

static void
put_length(char *to, size_t n)
{
    for (int i = 0; i < PREFIX; i++)
        to[i] = (char)(n >> 8 * i);
}

/* The next message; its kind is ETD_KIND_COUNT where none comes. */
static enum etd_kind
hear(struct side *s)
{
    unsigned char prefix[PREFIX];
    struct etd_fault fault;
    size_t n = 0;
    if (!read_whole(s->from, (char *)prefix, PREFIX))
        return ETD_KIND_COUNT;
    for (int i = 0; i < PREFIX; i++)
        n |= (size_t)prefix[i] << 8 * i;
    if (n > sizeof s->bytes || !read_whole(s->from, s->bytes, n) ||
        etd_read(s->bytes, n, &s->f, &fault) != ET_OK)
        bail("a message of %zu bytes is none", n);
    return s->f.head.kind;
}

/* A message of KIND with its length before it, at TO: its bytes. Its keys: a number
 * NAME, or none where that is NULL. */
static size_t
make_message(char *to, enum etd_kind kind, const char *name, int64_t value)
{
    const struct etd_head head = {.kind = kind};
    struct etd_out o;
    etd_begin(&o, to + PREFIX, ETD_CONTROL_BYTES, &head,
              kind == ETD_HELLO || name ? 1 : 0);
    if (kind == ETD_HELLO)
        etd_put_bool(&o, "worker", true);
    else if (name)
        etd_put_int(&o, name, value);
    size_t n = etd_end(&o);
    put_length(to, n);
    return PREFIX + n;
}

/* Messages may come a byte at a time, or several at once. */
static void
test_relay_pieces(void)
{
    char bytes[4 * (PREFIX + ETD_CONTROL_BYTES)];
    for (int at_once = 0; at_once < 2; at_once++) {
        static struct side s;
        size_t n = make_message(bytes, ETD_HELLO, NULL, 0);
        n += make_message(bytes + n, ETD_PING, NULL, 0);
        n += make_message(bytes + n, ETD_LOAD, "bytes", 70000);
        n += make_message(bytes + n, ETD_PING, NULL, 0);
        side_begin(&s, "/bin/false");
        for (size_t i = 0; i < n; i += at_once ? n : 1)
            write_whole(s.to, bytes + i, at_once ? n : 1);
        struct etd_value v;
        char role[32];
        ok(hear(&s) == ETD_WELCOME &&
               strcmp(etd_get_text(&s.f.body, "role", role, 32), "operator") == 0,
           "who comes by ssh is an operator");
        ok(hear(&s) == ETD_PONG, "messages that come %s are heard,",
           at_once ? "all at once" : "byte by byte");
        ok(hear(&s) == ETD_LOAD && etd_find(&s.f.body, "data", &v) && v.n == 70000,
           "and answers of many bytes are whole,");
        ok(hear(&s) == ETD_PONG, "each in its turn");
        is_int(side_end(&s), 0, "and then it ends");
    }
}

/* The longest message there is, and one that is longer. */
static void
test_relay_limit(void)
{
    static char bytes[PREFIX + ETD_CHUNK_BYTES + 1];
    for (size_t n = ETD_CHUNK_BYTES; n <= ETD_CHUNK_BYTES + 1; n++) {
        static struct side s;
        char hello[PREFIX + ETD_CONTROL_BYTES];
        side_begin(&s, "/bin/false");
        write_whole(s.to, hello, make_message(hello, ETD_HELLO, NULL, 0));
        (void)hear(&s);
        put_length(bytes, n);
        /* One that is too long is not read to its end. */
        write_whole(s.to, bytes, n <= ETD_CHUNK_BYTES ? PREFIX + n : PREFIX);
        is_int((int)hear(&s), n <= ETD_CHUNK_BYTES ? ETD_BYE : ETD_KIND_COUNT,
               "what is %s message of %zu bytes is %s",
               n <= ETD_CHUNK_BYTES ? "no" : "a", n,
               n <= ETD_CHUNK_BYTES ? "answered" : "the end");
        (void)side_end(&s);
    }
}

/* What became of a recipe is said while others are still talking, and is written down
 * for who asks again where they are gone. */
static void
test_relay_start(void)
{
    const char script[] = "#!/bin/sh\nsleep .1\necho calm-heron goes on\n";
    char path[4200];
    snprintf(path, sizeof path, "%s",
             write_file("starter", script, strlen(script), false));
    if (chmod(path, 0755) != 0)
        bail("no program");
    for (unsigned char gone = 0; gone < 2; gone++) {
        static struct side s;
        char bytes[PREFIX + ETD_CONTROL_BYTES], answer[4300], text[256] = "";
        const unsigned char id[ETD_CMD_ID] = {0x80 | gone};
        const struct etd_head head = {.kind = ETD_START};
        struct etd_answer a;
        struct etd_out o;
        side_begin(&s, path);
        write_whole(s.to, bytes, make_message(bytes, ETD_HELLO, NULL, 0));
        (void)hear(&s);
        etd_begin(&o, bytes + PREFIX, ETD_CONTROL_BYTES, &head, 2);
        etd_put_bin(&o, "id", id, sizeof id);
        etd_put_bin(&o, "recipe", "model: x\n", 9);
        size_t n = etd_end(&o);
        put_length(bytes, n);
        write_whole(s.to, bytes, PREFIX + n);
        ok(hear(&s) == ETD_RECEIVED, "a recipe is received");
        if (!gone)
            ok(hear(&s) == ETD_APPLIED && etd_answer_read(&s.f, &a) &&
                   strcmp(a.text, "calm-heron goes on") == 0 &&
                   memcmp(a.id, id, sizeof id) == 0,
               "and its run goes on");
        is_int(side_end(&s), 0, "who began it is gone");
        snprintf(answer, sizeof answer, "%s/start-%02x%030d/answer", scratch_folder(),
                 id[0], 0);
        FILE *f = fopen(answer, "r");
        if (f && fgets(text, sizeof text, f))
            fclose(f);
        ok(strstr(text, "calm-heron goes on"), "and what became of it is written down");
    }
}

/* ---- who asks a worker: its answers are files ---- */

static const struct etd_channel_options lab = {.target = "ssh://lab"};

/* The message that O ends is what the file NAME has, with its length before it. */
static void
keep(const char *name, char *bytes, struct etd_out *o)
{
    size_t n = etd_end(o);
    put_length(bytes, n);
    write_file(name, bytes, PREFIX + n, false);
}

static struct etd_out
message(char *bytes, enum etd_kind kind, int n_keys)
{
    const struct etd_head head = {.kind = kind};
    struct etd_out o;
    etd_begin(&o, bytes + PREFIX, ETD_CHUNK_BYTES, &head, n_keys);
    return o;
}

/* Bytes of a question without keys. */
static size_t
size_of(enum etd_kind kind)
{
    char bytes[PREFIX + ETD_CONTROL_BYTES];
    return make_message(bytes, kind, NULL, 0);
}

/* Of HELLO, as who asks says it. */
static size_t
size_of_hello(void)
{
    static char bytes[PREFIX + ETD_CHUNK_BYTES];
    struct etd_out o = message(bytes, ETD_HELLO, 2);
    etd_put_int(&o, "minor", ETD_MINOR);
    etd_put_bool(&o, "worker", true);
    return PREFIX + etd_end(&o);
}

static void
keep_answers(void)
{
    static char bytes[PREFIX + ETD_CHUNK_BYTES];
    static const char nothing[100000];
    static const struct etd_host_facts host = {
        .uptime = 11, .disk_free = 12, .runs = 13, .run = "calm-heron"};
    struct etd_out o = message(bytes, ETD_WELCOME, 7);
    etd_put_int(&o, "minor", ETD_MINOR);
    etd_put_bool(&o, "worker", true);
    etd_put_text(&o, "name", "the lab");
    etd_put_text(&o, "role", "viewer");
    etd_put_text(&o, "version", "9.8.7");
    etd_put_int(&o, "cores", 3);
    etd_put_int(&o, "gpus", 5);
    keep("welcome", bytes, &o);
    o = message(bytes, ETD_PONG, 0);
    keep("pong", bytes, &o);
    const struct etd_head head = {.kind = ETD_MACHINE};
    size_t n = etd_host_write(bytes + PREFIX, ETD_CHUNK_BYTES, &head, &host);
    put_length(bytes, n);
    write_file("machine", bytes, PREFIX + n, false);
    o = message(bytes, ETD_LOAD, 1);
    etd_put_bin(&o, "data", nothing, sizeof nothing);
    keep("load", bytes, &o);
    o = message(bytes, ETD_LOAD, 2);
    etd_put_bin(&o, "data", nothing, 1);
    etd_put_bool(&o, "done", true);
    keep("load.last", bytes, &o);
    o = message(bytes, ETD_RUNS, 1);
    etd_put_bin(&o, "facts", "{\"name\": \"a\"}", 13);
    keep("run", bytes, &o);
    o = message(bytes, ETD_RUNS, 2);
    etd_put_bin(&o, "facts", "{\"name\": \"b\"}", 13);
    etd_put_bool(&o, "done", true);
    keep("run.last", bytes, &o);
    o = message(bytes, ETD_BYE, 1);
    etd_put_text(&o, "text", "the lab is closed");
    keep("bye", bytes, &o);
}

static void
test_asking(struct et_ctx *cx)
{
    static struct etd_worker_test t;
    char script[512];
    json_t *runs;
    const int hello = (int)size_of_hello(), ping = (int)size_of(ETD_PING);
    keep_answers();
    snprintf(script, sizeof script,
             "head -c %d >hello; cat welcome; head -c %d >ping; sleep .06; cat pong\n"
             "cat machine load; sleep .1; cat load.last; cat >/dev/null",
             hello, ping);
    ssh_is(script);
    need(cx, etd_worker_test(cx, &lab, LONG, &t));
    is_str(t.info.name, "the lab", "a worker is asked for its name,");
    is_str(t.info.version, "9.8.7", "its version,");
    is_str(t.info.role, "viewer", "what the key may do there,");
    ok(t.info.cores == 3 && t.info.gpus == 5, "how many processors and GPUs it has,");
    ok(t.info.rtt >= 0.06 && t.info.rtt < 20, "how long a PING takes: %g s",
       t.info.rtt);
    ok(t.host.uptime == 11 && t.host.runs == 13 &&
           strcmp(t.host.run, "calm-heron") == 0,
       "its machine,");
    ok(t.bandwidth > 100000 / LONG, "and how fast bytes come: %g a second",
       t.bandwidth);
    snprintf(script, sizeof script,
             "head -c %d >/dev/null; cat welcome run run.last; cat >/dev/null", hello);
    ssh_is(script);
    need(cx, etd_worker_runs(cx, &lab, LONG, &runs));
    ok(json_array_size(runs) == 2 &&
           strcmp(json_string_value(json_object_get(json_array_get(runs, 1), "name")),
                  "b") == 0,
       "its runs are told, with the last message, too");
    json_decref(runs);
    ssh_is("cat welcome bye; cat >/dev/null");
    is_int(etd_worker_runs(cx, &lab, LONG, &runs), ET_ECANCELED,
           "one that takes leave is not waited for");
    is_str(et_error_get(cx)->message, "the worker says: the lab is closed",
           "and its words are told");
    et_error_clear(cx);
    static char bytes[PREFIX + ETD_CONTROL_BYTES];
    char says[100];
    size_t n = make_message(bytes, ETD_WELCOME, NULL, 0);
    bytes[PREFIX + 1] = ETD_MAJOR + 6; /* [major, minor, ...] */
    write_file("later", bytes, n, false);
    ssh_is("cat later; cat >/dev/null");
    is_int(etd_worker_runs(cx, &lab, LONG, &runs), ET_ENOTSUP,
           "one of another major version is not understood");
    snprintf(says, sizeof says, "worker speaks protocol %d, this is %d", ETD_MAJOR + 6,
             ETD_MAJOR);
    is_str(et_error_get(cx)->message, says, "and both versions are told");
    et_error_clear(cx);
    ok(!runs, "and there are no runs");
}

/* ---- a recipe for it ---- */

/* The file NAME, without the length that a message begins with. */
static size_t
read_message(const char *name, char *bytes, size_t room)
{
    FILE *f = fopen(name, "r");
    char prefix[PREFIX];
    if (!f || fread(prefix, 1, PREFIX, f) != PREFIX)
        bail("no %s", name);
    size_t n = fread(bytes, 1, room, f);
    fclose(f);
    return n;
}

/* The answer of KIND to the command that comes in, once. FIRST bytes of the command are
 * before its id. */
static void
answer_by(enum etd_kind kind, size_t first, size_t all, int hello)
{
    static char bytes[PREFIX + ETD_CHUNK_BYTES];
    static const unsigned char id[ETD_CMD_ID] = "ID that is asked";
    const struct etd_head head = {.kind = kind};
    struct etd_answer a = {.kind = kind, .code = 2003};
    char script[1024];
    snprintf(a.text, sizeof a.text, "as you like");
    memcpy(a.id, "ID of another one", ETD_CMD_ID);
    size_t n = etd_answer_write(bytes + PREFIX, ETD_CONTROL_BYTES, &head, &a);
    put_length(bytes, n);
    write_file("other", bytes, PREFIX + n, false);
    memcpy(a.id, id, sizeof id);
    n = PREFIX + etd_answer_write(bytes + PREFIX, ETD_CONTROL_BYTES, &head, &a);
    const char *at = memmem(bytes, n, id, sizeof id);
    if (!at)
        bail("the answer has no id");
    size_t before = (size_t)(at - bytes);
    write_file("before", bytes, before, false);
    write_file("behind", at + sizeof id, n - before - sizeof id, false);
    /* The first time the line breaks when the recipe is there. */
    snprintf(script, sizeof script,
             "head -c %d >hello; cat welcome; head -c %zu >start\n"
             "[ -e again ] || { cp start again; exit 1; }\n"
             "cat other before; tail -c +%zu start | head -c 16; cat behind\n"
             "cat >/dev/null",
             hello, all, first + 1);
    unlink("again");
    ssh_is(script);
}

static void
test_sending(struct et_ctx *cx)
{
    static char bytes[ETD_CHUNK_BYTES], again[ETD_CHUNK_BYTES];
    static struct etd_file_there file[65];
    static const char *const args[] = {"a=1", "--alg=ema"};
    struct etd_launch_there l = {.recipe = "model: x\n",
                                 .bytes = 9,
                                 .file = file,
                                 .n_files = 3,
                                 .name = "digits",
                                 .args = args,
                                 .n = 2,
                                 .gpus = 4};
    static const char *const texts[] = {"one", "", "three"};
    struct etd_answer a;
    struct etd_frame f;
    struct etd_fault fault;
    struct etd_value v;
    int64_t sizes[3];
    char script[512], name[64];
    const int hello = (int)size_of_hello();
    for (int i = 0; i < 65; i++)
        file[i] = (struct etd_file_there){i == 1 ? "b/c.yaml" : "a.yaml",
                                          i < 3 ? texts[i] : "x",
                                          i < 3 ? strlen(texts[i]) : 1};
    /* It reads a recipe, and the line breaks; then it does not want any. */
    snprintf(script, sizeof script,
             "head -c %d >hello; cat welcome; [ -e start ] && exec cat bye\n"
             "head -c 4 >length; head -c $(od -An -tu4 length) >start; exit 1",
             hello);
    ssh_is(script);
    is_int(etd_worker_start(cx, &lab, LONG, &l, &a), ET_ECANCELED,
           "a worker may want no recipe");
    et_error_clear(cx);
    FILE *sent = fopen("start", "r");
    size_t n, whole = sent ? fread(bytes, 1, sizeof bytes, sent) : 0;
    if (sent)
        fclose(sent);
    if (etd_read(bytes, whole, &f, &fault) != ET_OK || !etd_find(&f.body, "id", &v) ||
        v.n != ETD_CMD_ID)
        bail("a recipe was not sent");
    size_t first = PREFIX + (size_t)((const char *)v.bytes - bytes);
    is_str(etd_get_text(&f.body, "name", name, sizeof name), "digits",
           "a recipe is sent with its name,");
    is_int(etd_get_int(&f.body, "gpus", 0), 4, "how many GPUs it wants,");
    ok(etd_find(&f.body, "recipe", &v) && v.n == 9 &&
           memcmp(v.bytes, "model: x\n", 9) == 0,
       "its text,");
    ok(etd_find(&f.body, "args", &v) && v.n == 2, "its options,");
    ok(etd_get_ints(&f.body, "sizes", sizes, 3) == 3 && sizes[0] == 3 &&
           sizes[1] == 0 && sizes[2] == 5,
       "how long each of its files is,");
    ok(etd_find(&f.body, "files", &v) && v.n == 8 &&
           memcmp(v.bytes, "onethree", 8) == 0,
       "and what is in them");
    static const enum etd_kind kinds[] = {ETD_APPLIED, ETD_REJECTED, ETD_EXPIRED};
    for (size_t k = 0; k < 3; k++) {
        answer_by(kinds[k], first, PREFIX + whole, hello);
        need(cx, etd_worker_start(cx, &lab, LONG, &l, &a));
        is_int((int)a.kind, (int)kinds[k], "what comes of it is told: %s",
               etd_kind_name(kinds[k]));
        n = read_message("start", bytes, sizeof bytes);
        is_int((int)read_message("again", again, sizeof again), (int)n,
               "where the line breaks it is sent again,");
        ok(memcmp(bytes, again, n) == 0, "as the same command");
        ok(memcmp(a.id, bytes + first - PREFIX, ETD_CMD_ID) == 0,
           "whose answer is meant, and no other's");
    }
    unlink("start");
    ssh_is(script);
    for (l.n_files = 64; l.n_files <= 65; l.n_files++) {
        is_int(etd_worker_start(cx, &lab, LONG, &l, &a),
               l.n_files > 64 ? ET_EINVAL : ET_ECANCELED, "%d files are %s", l.n_files,
               l.n_files > 64 ? "too many" : "sent");
        et_error_clear(cx);
    }
    ssh_is("exit 255");
    is_int(etd_worker_start(cx, &lab, LONG, &l, &a), ET_ENOENT,
           "one that is not reached is not asked again");
    et_error_clear(cx);
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
    test_asking(cx);
    test_sending(cx);
    test_relay_pieces();
    test_relay_limit();
    test_relay_start();
    test_refusals(cx);
    et_ctx_free(&cx);
    return done();
}
