/* SPDX-License-Identifier: Apache-2.0 */
/* Recipes that are sent to a worker: what came of one is said for a day, to whoever
 * asks again; one whose worker ended meanwhile is given up; and what is old is removed.
 * The program that starts is a script of the test's. */
#include "config.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "dist/wire/errors.h"
#include "dist/worker/child.h"
#include "dist/worker/start.h"
#include "t/data/fixture.h"
#include "t/tap.h"

enum { DAY = 24 * 3600, LOST = 120 };
static struct etd_starts s;
static char folder[600], program[600];

/* What is started says TEXT and exits with CODE. */
static void
make_program(const char *text, int code)
{
    FILE *f = fopen(program, "w");
    if (!f || fprintf(f, "#!/bin/sh\nprintf '%s'\nexit %d\n", text, code) < 0 ||
        fclose(f) != 0 || chmod(program, 0700) != 0)
        bail("no program");
}

/* Sends a recipe as command NUMBER. False: *A says why not. */
static bool
take(unsigned char number, int64_t gpus, struct etd_answer *a)
{
    char bytes[ETD_CONTROL_BYTES];
    const unsigned char id[ETD_CMD_ID] = {number};
    const struct etd_head head = {.kind = ETD_START};
    struct etd_out o;
    struct etd_frame f;
    struct etd_fault fault;
    etd_begin(&o, bytes, sizeof bytes, &head, 3);
    etd_put_bin(&o, "id", id, sizeof id);
    etd_put_bin(&o, "recipe", "model: x\n", 9);
    etd_put_int(&o, "gpus", gpus);
    size_t n = etd_end(&o);
    if (n == 0 || etd_read(bytes, n, &f, &fault) != ET_OK)
        bail("no frame");
    return etd_start_take(&s, &f, 2, a);
}

/* Until what was begun has ended. */
static void
finish(void)
{
    while (etd_starts_any(&s)) {
        for (int i = 0; i < ETD_STARTING; i++)
            if (s.start[i].used)
                (void)poll(
                    &(struct pollfd){.fd = s.start[i].child.fd, .events = POLLIN}, 1,
                    60000);
        etd_starts_step(&s);
    }
}

static void
place_of(unsigned char number, char path[700])
{
    snprintf(path, 700, "%s/start-%02x%030d", folder, number, 0);
}

static bool
is_there(unsigned char number)
{
    char path[700];
    struct stat st;
    place_of(number, path);
    return lstat(path, &st) == 0;
}

/* The folder of command NUMBER, which was written to SECONDS ago. */
static void
age(unsigned char number, double seconds)
{
    char path[700];
    place_of(number, path);
    (void)mkdir(path, 0700);
    const struct timespec t = {.tv_sec = (time_t)(eti_wall(s.cx) - seconds)};
    if (utimensat(AT_FDCWD, path, (struct timespec[]){t, t}, 0) != 0)
        bail("cannot age %s", path);
}

/* Runs ARGV until it ends; its exit status. */
static int
run_child(struct etd_child *c, const char *const *argv, bool errors)
{
    int status = -1;
    if (!etd_child_start(c, argv[0], argv, errors))
        bail("%s does not start", argv[0]);
    while (!etd_child_step(c, &status))
        (void)poll(&(struct pollfd){.fd = c->fd, .events = POLLIN}, 1, 60000);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A program that a worker starts: what it is told, and what is taken of its words. */
static void
test_child(void)
{
    static struct etd_child c;
    int status;
    static const char *const talks[] = {
        "sh", "-c",
        "printf \"$ETUDE_SERVED one\"; sleep .05; printf ' two'; printf three >&2; "
        "exit 7",
        NULL};
    for (int errors = 0; errors < 2; errors++) {
        is_int(run_child(&c, talks, errors), 7, "a child's exit code is told,");
        is_str(c.said, errors ? "1 one twothree" : "1 one two",
               "and all that it said, %s its errors", errors ? "with" : "without");
        ok(c.pid == 0 && c.fd == -1 && !etd_child_step(&c, &status),
           "and then there is none any more");
        etd_child_kill(&c);
    }
    static const char *const much[] = {
        "sh", "-c",
        "i=0; while [ $i -lt 500 ]; do printf 0123456789; i=$((i + 1)); done", NULL};
    is_int(run_child(&c, much, false), 0, "one that says more than there is room for");
    ok(strlen(c.said) == sizeof c.said - 1 && c.n == sizeof c.said - 1 &&
           strcmp(c.said + c.n - 5, "01234") == 0,
       "is heard as far as there is room");
    static const char *const signals[] = {
        "grep", "Sig[BI][lg][kn]:", "/proc/self/status", NULL};
    sigset_t all, old;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &old);
    signal(SIGUSR1, SIG_IGN);
    is_int(run_child(&c, signals, false), 0, "who holds back and ignores signals");
    signal(SIGUSR1, SIG_DFL);
    sigprocmask(SIG_SETMASK, &old, NULL);
    const unsigned long long user1 = 1ULL << (SIGUSR1 - 1);
    unsigned long long held = user1, ignored = user1;
    (void)sscanf(c.said, "SigBlk: %llx SigIgn: %llx", &held, &ignored);
    ok(!(held & user1) && !(ignored & user1), "starts programs that do neither");
}

static void
test_answers(void)
{
    static const struct {
        const char *said;
        int exit;
        enum etd_kind kind;
        int code;
        const char *text;
    } row[] = {
        {"calm-heron goes on", 0, ETD_APPLIED, 0, "calm-heron goes on"},
        {"one\\ntwo\\n", 0, ETD_APPLIED, 0, "one"},
        {"etude: warn: slow\\ncalm-heron goes on\\n", 0, ETD_APPLIED, 0,
         "calm-heron goes on"},
        {"etude: warn: a\\netude: warn: b\\netude: error E2003: no such key\\n", 2,
         ETD_REJECTED, 2003, "no such key"},
        {"etude: error E3001: none", 1, ETD_REJECTED, 3001, "none"},
        {"went wrong", 1, ETD_REJECTED, ETD_E_ARGUMENT, "went wrong"},
        {"", 0, ETD_APPLIED, 0, "etude train said nothing"},
        {"etude: warn: alone", 0, ETD_APPLIED, 0, "etude: warn: alone"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const unsigned char number = (unsigned char)(i + 1);
        const unsigned char id[ETD_CMD_ID] = {number};
        struct etd_answer a;
        make_program(row[i].said, row[i].exit);
        ok(take(number, 0, &a), "a recipe is taken");
        finish();
        for (int times = 0; times < 2; times++)
            ok(etd_start_answer(&s, id, &a) && a.kind == row[i].kind &&
                   a.code == row[i].code && strcmp(a.text, row[i].text) == 0 &&
                   memcmp(a.id, id, sizeof id) == 0,
               "its answer, time %d: %s %d %s", times + 1, etd_kind_name(a.kind),
               a.code, a.text);
    }
    struct etd_answer a;
    make_program("other", 0);
    ok(take(1, 0, &a) && !etd_starts_any(&s),
       "one that comes again is not begun again");
    ok(etd_start_answer(&s, (const unsigned char[ETD_CMD_ID]){1}, &a) &&
           strcmp(a.text, "calm-heron goes on") == 0,
       "and has its answer");
}

static void
test_gpus(void)
{
    struct etd_answer a;
    make_program("fine", 0);
    ok(take(51, 2, &a), "a recipe for as many GPUs as there are is taken");
    finish();
    ok(!take(52, 3, &a) && a.kind == ETD_REJECTED && a.code == ETD_E_FULL,
       "one for more is not: %s", a.text);
    ok(!take(53, -1, &a), "nor one for fewer than none");
}

static void
test_lost(void)
{
    struct etd_answer a;
    age(61, LOST - 60);
    ok(!etd_start_answer(&s, (const unsigned char[ETD_CMD_ID]){61}, &a),
       "what another worker began a minute ago may have an answer yet");
    age(61, LOST + 60);
    ok(etd_start_answer(&s, (const unsigned char[ETD_CMD_ID]){61}, &a) &&
           a.kind == ETD_EXPIRED,
       "what it began three minutes ago is given up");
    ok(etd_start_answer(&s, (const unsigned char[ETD_CMD_ID]){62}, &a) &&
           a.kind == ETD_EXPIRED,
       "so is what nobody knows of");
}

static void
test_old(void)
{
    struct etd_answer a;
    make_program("fine", 0);
    age(71, DAY - 600);
    age(72, DAY + 600);
    ok(take(73, 0, &a), "when a recipe is taken");
    finish();
    ok(is_there(71), "what is younger than a day stays");
    ok(!is_there(72), "what is older goes");
    ok(is_there(73), "what was begun is there");
    char path[800], place[700], file[900];
    struct stat st;
    /* Folders in each other below what is old; what others have; and a link. */
    age(74, 0);
    place_of(74, place);
    snprintf(path, sizeof path, "%s/1", place);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/1/2", place);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/1/2/3", place);
    mkdir(path, 0700);
    snprintf(file, sizeof file, "%s/x", path);
    FILE *f = fopen(file, "w");
    if (f)
        fclose(f);
    age(74, DAY + 600);
    snprintf(path, sizeof path, "%s/others", folder);
    mkdir(path, 0700);
    snprintf(file, sizeof file, "%s/x", path);
    f = fopen(file, "w");
    if (f)
        fclose(f);
    const struct timespec then = {.tv_sec = (time_t)(eti_wall(s.cx) - 2 * DAY)};
    if (utimensat(AT_FDCWD, path, (struct timespec[]){then, then}, 0) != 0)
        bail("cannot age %s", path);
    place_of(75, place);
    if (symlink(path, place) != 0)
        bail("no link");
    ok(take(76, 0, &a), "the next recipe is taken");
    finish();
    ok(!is_there(74), "what is old goes with all that is in it,");
    ok(stat(path, &st) == 0, "what is somebody else's stays,");
    ok(stat(file, &st) == 0 && is_there(75), "also what a link leads to");
}

/* ---- what may be sent ---- */

struct parcel {
    const char *const *args;
    int n_args;
    const char *const *paths;
    int n_paths;
    const int64_t *sizes;
    int n_sizes;
    const char *files, *name;
    size_t n_files, recipe; /* bytes; RECIPE 0: what a recipe is */
};

/* Sends P as NUMBER, and waits until it has ended. Is it taken? Else it left
 * nothing. */
static bool
is_taken(unsigned char number, const struct parcel *p)
{
    static char bytes[ETD_CHUNK_BYTES], recipe[ETD_RECIPE_BYTES + 1];
    const unsigned char id[ETD_CMD_ID] = {number};
    const struct etd_head head = {.kind = ETD_START};
    struct etd_answer a;
    struct etd_out o;
    struct etd_frame f;
    struct etd_fault fault;
    memset(recipe, '#', sizeof recipe);
    etd_begin(&o, bytes, sizeof bytes, &head,
              2 + !!p->args + !!p->paths + !!p->sizes + !!p->files + !!p->name);
    etd_put_bin(&o, "id", id, sizeof id);
    etd_put_bin(&o, "recipe", p->recipe ? recipe : "model: x\n",
                p->recipe ? p->recipe : 9);
    if (p->args)
        etd_put_texts(&o, "args", p->args, p->n_args);
    if (p->paths)
        etd_put_texts(&o, "paths", p->paths, p->n_paths);
    if (p->sizes)
        etd_put_ints(&o, "sizes", p->sizes, p->n_sizes);
    if (p->files)
        etd_put_bin(&o, "files", p->files, p->n_files);
    if (p->name)
        etd_put_text(&o, "name", p->name);
    size_t n = etd_end(&o);
    if (n == 0 || etd_read(bytes, n, &f, &fault) != ET_OK)
        bail("no frame");
    bool taken = etd_start_take(&s, &f, 2, &a);
    finish();
    if (is_there(number) != taken)
        bail("command %d: its folder is %s", number, taken ? "gone" : "there");
    if (et_error_get(s.cx)->status != ET_OK)
        bail("command %d: an error is left", number);
    return taken;
}

/* The permissions of FILE, which command NUMBER has brought, and what is in it. */
static unsigned
mode_of(unsigned char number, const char *file, char text[64])
{
    char path[1024], place[700];
    struct stat st;
    place_of(number, place);
    snprintf(path, sizeof path, "%s/files/%s", place, file);
    text[0] = '\0';
    if (lstat(path, &st) != 0)
        return 0;
    FILE *f = S_ISREG(st.st_mode) ? fopen(path, "r") : NULL;
    if (f) {
        text[fread(text, 1, 63, f)] = '\0';
        fclose(f);
    }
    return st.st_mode & 0777;
}

static void
test_words(void)
{
    const char *words[33];
    static const struct {
        const char *word;
        bool right;
    } row[] = {
        {"train_data.batch_size=64", true},
        {"--alg=ema", true},
        {"--alg=", true},
        {"--no-alg=ema", true},
        {"--unset=x", true},
        {"--target=0.5", true},
        {"--timeout=5", true},
        {"--run_name=a", true},
        {"--nproc=2", true},
        {"--alg", false},
        {"--alga=1", false},
        {"-d", false},
        {"word", false},
        {"", false},
    };
    unsigned char number = 81;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        words[0] = "a=1";
        words[1] = row[i].word;
        is_int(is_taken(number++, &(struct parcel){.args = words, .n_args = 2}),
               row[i].right, "'%s' is %s", row[i].word,
               row[i].right ? "a word for a recipe" : "none");
    }
    for (int i = 0; i < 33; i++)
        words[i] = "a=1";
    for (int n = 32; n <= 33; n++)
        is_int(is_taken(number++, &(struct parcel){.args = words, .n_args = n}),
               n == 32, "%d words are %s", n, n > 32 ? "too many" : "taken");
    /* With their ends they have 16 KiB. */
    for (int over = 0; over < 2; over++) {
        static char each[512], last[514];
        memset(each, '=', 511);
        memset(last, '=', 511);
        last[511] = over ? '=' : '\0';
        for (int i = 0; i < 32; i++)
            words[i] = i < 31 ? each : last;
        is_int(is_taken(number++, &(struct parcel){.args = words, .n_args = 32}), !over,
               "words of %s are %s", over ? "more than 16 KiB" : "16 KiB",
               over ? "too long" : "taken");
    }
}

static void
test_paths(void)
{
    static const struct {
        const char *path;
        bool right;
    } row[] = {
        {"a.yaml", true},
        {"b/c/d.yaml", true},
        {"..x/y", true},
        {"x../y", true},
        {"/a", false},
        {"a/../b", false},
        {"..", false},
        {"a/..", false},
        {"a/", false},
        {"", false},
        {"1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18/19/20/x", true},
        {"1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18/19/20/21/22/23/24/x", false},
    };
    static const int64_t size = 2;
    char text[64];
    unsigned char number = 121;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++, number++) {
        const struct parcel p = {.paths = &row[i].path,
                                 .n_paths = 1,
                                 .sizes = &size,
                                 .n_sizes = 1,
                                 .files = "hi",
                                 .n_files = 2};
        is_int(is_taken(number, &p), row[i].right, "'%s' %s the recipe's folder",
               row[i].path, row[i].right ? "is beneath" : "is not in");
        if (row[i].right)
            ok(mode_of(number, row[i].path, text) == 0600 && strcmp(text, "hi") == 0,
               "and is for nobody else to read");
    }
    ok(mode_of(122, "b", text) == 0700 && mode_of(122, "b/c", text) == 0700,
       "nor are its folders");
}

static void
test_sizes(void)
{
    static const char *const paths[] = {"one", "none", "three"};
    static const struct {
        int64_t size[3];
        int n;
        bool right;
    } row[] = {
        {{3, 0, 5}, 3, true},  {{3, 0, 4}, 3, true},   {{3, 0, 6}, 3, false},
        {{8, 1, 0}, 3, false}, {{3, -1, 5}, 3, false}, {{3, 5}, 2, false},
    };
    static const char *const has[] = {"abc", "", "defgh"};
    char text[64];
    unsigned char number = 141;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        is_int(is_taken(number++, &(struct parcel){.paths = paths,
                                                   .n_paths = 3,
                                                   .sizes = row[i].size,
                                                   .n_sizes = row[i].n,
                                                   .files = "abcdefgh",
                                                   .n_files = 8}),
               row[i].right, "files of %d, %d and %d bytes are %s", (int)row[i].size[0],
               (int)row[i].size[1], (int)row[i].size[2],
               row[i].right ? "in 8" : "not in 8");
    for (int i = 0; i < 3; i++) {
        (void)mode_of(141, paths[i], text);
        is_str(text, has[i], "each has its own bytes");
    }
    static const struct {
        const char *name, *file;
    } names[] = {{NULL, "recipe.yaml"}, {"digits", "digits.yaml"}, {"../x", NULL}};
    for (int i = 0; i < 3; i++, number++) {
        is_int(is_taken(number, &(struct parcel){.name = names[i].name}),
               names[i].file != NULL, "a recipe %s is %s",
               names[i].name ? names[i].name : "without a name",
               names[i].file ? "taken" : "not");
        if (names[i].file)
            ok(mode_of(number, names[i].file, text) == 0600 &&
                   strcmp(text, "model: x\n") == 0,
               "as %s", names[i].file);
    }
    for (size_t n = ETD_RECIPE_BYTES; n <= ETD_RECIPE_BYTES + 1; n++)
        is_int(is_taken(number++, &(struct parcel){.recipe = n}), n == ETD_RECIPE_BYTES,
               "a recipe of %zu bytes is %s", n,
               n > ETD_RECIPE_BYTES ? "too long" : "taken");
}

/* The words that the program is started with; of what it says, where the recipe lies is
 * left out. */
static void
test_arguments(void)
{
    static const char *const words[] = {"train_data.batch_size=64", "--alg=ema"};
    struct etd_answer a;
    FILE *f = fopen(program, "w");
    if (!f || fputs("#!/bin/sh\nprintf '%s|' \"$@\" \"$5\"\ncat \"$5\" >&2\n", f) < 0 ||
        fclose(f) != 0)
        bail("no program");
    ok(is_taken(181, &(struct parcel){.args = words, .n_args = 2, .name = "digits"}),
       "a recipe is taken with two words");
    ok(etd_start_answer(&s, (const unsigned char[ETD_CMD_ID]){181}, &a) &&
           a.kind == ETD_APPLIED,
       "and its program has run");
    is_str(a.text,
           "train|-d|--progress=none|launch.worker=null|digits.yaml|"
           "train_data.batch_size=64|--alg=ema|digits.yaml|model: x",
           "for a run that nobody waits for, with the recipe, and the words behind it");
}

/* A program that a signal ends has begun nothing. */
static void
test_signal(void)
{
    struct etd_answer a;
    FILE *f = fopen(program, "w");
    if (!f || fputs("#!/bin/sh\nkill -9 $$\n", f) < 0 || fclose(f) != 0)
        bail("no program");
    ok(take(171, 0, &a), "a recipe is taken");
    finish();
    ok(etd_start_answer(&s, (const unsigned char[ETD_CMD_ID]){171}, &a) &&
           a.kind == ETD_REJECTED && a.code == ETD_E_ARGUMENT,
       "that its program was ended by a signal is told");
}

int
main(void)
{
    s.cx = need_ctx();
    snprintf(folder, sizeof folder, "%s/etude", scratch_folder());
    snprintf(program, sizeof program, "%s/program", scratch_folder());
    if (mkdir(folder, 0700) != 0)
        bail("no folder");
    s.folder = folder;
    s.program = program;
    test_child();
    test_answers();
    test_gpus();
    test_lost();
    test_old();
    test_words();
    test_paths();
    test_sizes();
    test_arguments();
    test_signal();
    et_ctx_free(&s.cx);
    return done();
}
