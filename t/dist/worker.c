/* SPDX-License-Identifier: Apache-2.0 */
/* Who may do what at a worker: R24 of RELIABILITY.md section 10. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include "core/base/seams.h"
#include "dist/wire/endpoint.h"
#include "dist/wire/errors.h"
#include "dist/worker/target.h"
#include "dist/worker/worker.h"
#include "t/dist/house.h"
#include "t/tap.h"

enum { PATIENCE = 120 }; /* seconds: then it will never come */
static struct house h;
static char config[128], address[128];
static struct etd_keys server, viewer, operator_, expired, stranger;
static pid_t worker;
static int from_worker = -1;

/* ---- the worker as a process ---- */

/* All at once: the worker may look at any moment. */
static void
put_file(const char *name, mode_t mode, const char *text)
{
    char path[256], other[256];
    snprintf(path, sizeof path, "%s/%s", config, name);
    snprintf(other, sizeof other, "%s/other", config);
    FILE *f = fopen(other, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0 || chmod(other, mode) != 0 ||
        rename(other, path) != 0)
        bail("cannot write %s", path);
}

/* authorized_keys as it is when all is well; WHO: "vo" viewer and operator, "VO" with
 * the roles of each other. */
static const char *
authorized(const char *who)
{
    static char text[512];
    size_t n = (size_t)snprintf(text, sizeof text, "viewer %s late until=2020-01-01\n",
                                expired.public_key);
    if (strpbrk(who, "vV"))
        n += (size_t)snprintf(text + n, sizeof text - n, "%s %s ann\n",
                              strchr(who, 'v') ? "viewer" : "operator",
                              viewer.public_key);
    if (strpbrk(who, "oO"))
        snprintf(text + n, sizeof text - n, "%s %s bob\n",
                 strchr(who, 'o') ? "operator" : "viewer", operator_.public_key);
    return text;
}

static volatile int stops; /* in the worker: SIGTERM came */

static void
note_stop(int number)
{
    stops = number;
}

static void
say_ready(void *data, const char *where, const char *fingerprint)
{
    (void)data;
    printf("listening at %s, key %s\n", where ? where : "a socket", fingerprint);
    fflush(stdout);
}

/* What "etude worker serve" does, in a child of the test: its exit code. */
static int
serve(const char *listen, const char *program)
{
    struct et_ctx *cx;
    char key[256], names[256], folder[4096];
    const struct sigaction action = {.sa_handler = note_stop};
    const struct etd_serve o = {
        .listen = listen,
        .key = key,
        .authorized = names,
        .program = program,
        .folder = etd_endpoint_folder(folder, sizeof folder),
        .stop = &stops,
        .ready = say_ready,
    };
    snprintf(key, sizeof key, "%s/curve.key", config);
    snprintf(names, sizeof names, "%s/authorized_keys", config);
    sigaction(SIGTERM, &action, NULL);
    if (et_ctx_new(&cx) != ET_OK)
        return 127;
    et_status status = etd_worker_serve(cx, &o);
    if (status != ET_OK)
        fprintf(stderr, "%s\n", et_error_get(cx)->message);
    et_ctx_free(&cx);
    return status == ET_OK ? 0 : 1;
}

/* Starts it; true: it listens, false: it ended with *CODE. IS_PROGRAM: by the command
 * of etude, whose exit code that is. */
static bool
start_worker(const char *listen, bool is_program, int *code)
{
    char program[4096], line[512] = "", resolved[4096];
    const char *build = getenv("ET_BUILDDIR");
    int out[2];
    size_t n = 0;
    snprintf(program, sizeof program, "%s/etude", build ? build : ".");
    if (!realpath(program, resolved) || pipe2(out, O_CLOEXEC) != 0)
        bail("no program %s", program);
    fflush(NULL);
    worker = fork();
    if (worker == 0) {
        dup2(out[1], STDOUT_FILENO);
        if (!getenv("ET_SHOW"))
            dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
        if (chdir(h.folder) != 0)
            _exit(127);
        close(out[0]);
        close(out[1]);
        if (!is_program)
            _exit(serve(listen, resolved));
        execl(resolved, resolved, "worker", "serve", listen ? "--listen" : NULL, listen,
              NULL);
        _exit(127);
    }
    close(out[1]);
    from_worker = out[0];
    while (n < sizeof line - 1 && read(from_worker, line + n, 1) == 1 &&
           line[n] != '\n')
        n++;
    if (n > 0) {
        if (sscanf(line, "listening at %127[^,]", address) != 1)
            bail("the worker says %s", line);
        return true;
    }
    waitpid(worker, code, 0);
    *code = WIFEXITED(*code) ? WEXITSTATUS(*code) : -1;
    close(from_worker);
    worker = 0;
    return false;
}

static int
stop_worker(void)
{
    int status = 0;
    kill(worker, SIGTERM);
    waitpid(worker, &status, 0);
    close(from_worker);
    worker = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- clients ---- */

static struct etd_channel_options
line_to(const struct etd_keys *keys)
{
    return (struct etd_channel_options){
        .target = address, .keys = keys, .server = server.public_key};
}

static bool breaks_off; /* the other side did: that was said */

static const char *
ask_once(const struct etd_keys *keys)
{
    static struct etd_worker_info info;
    const struct etd_channel_options o = line_to(keys);
    et_status status = etd_worker_info(h.cx, &o, PATIENCE, &info);
    int code = et_error_get(h.cx)->code;
    breaks_off = strstr(et_error_get(h.cx)->message, "its key still the one known");
    et_error_clear(h.cx);
    return status == ET_OK             ? info.role
           : code == ETD_E_KEYS        ? "denied"
           : code == ETD_E_UNREACHABLE ? "no answer"
                                       : "other";
}

/* Until there is an answer: a handshake that took 5 s, as the machine stood still, is
 * none. */
static const char *
ask(const struct etd_keys *keys)
{
    double end = eti_monotonic(h.cx) + PATIENCE;
    const char *got = ask_once(keys);
    while (strcmp(got, "no answer") == 0 && eti_monotonic(h.cx) < end)
        got = ask_once(keys);
    return got;
}

/* What KEYS are told once that is WANTED: the worker looks at its file every second. */
static const char *
becomes(const struct etd_keys *keys, const char *wanted)
{
    double end = eti_monotonic(h.cx) + PATIENCE;
    const char *got = ask(keys);
    while (strcmp(got, wanted) != 0 && eti_monotonic(h.cx) < end) {
        usleep(100000);
        got = ask(keys);
    }
    return got;
}

/* A plain socket at TO: neither key nor encryption, nor a look at whose it is. */
static bool
is_answered_in_clear(const char *to)
{
    char bytes[256];
    struct etd_out o;
    const struct etd_head head = {.kind = ETD_HELLO};
    int zero = 0, wait = 1500;
    void *zmq = zmq_ctx_new(), *socket = zmq_socket(zmq, ZMQ_DEALER);
    etd_begin(&o, bytes, sizeof bytes, &head, 1);
    etd_put_bool(&o, "worker", true);
    size_t n = etd_end(&o);
    bool answered = zmq_setsockopt(socket, ZMQ_LINGER, &zero, sizeof zero) == 0 &&
                    zmq_setsockopt(socket, ZMQ_RCVTIMEO, &wait, sizeof wait) == 0 &&
                    zmq_connect(socket, to) == 0 &&
                    zmq_send(socket, bytes, n, 0) >= 0 &&
                    zmq_recv(socket, bytes, sizeof bytes, 0) >= 0;
    zmq_close(socket);
    zmq_ctx_term(zmq);
    return answered;
}

static struct etd_client *
attach(const struct etd_keys *keys)
{
    struct etd_client *c;
    const struct etd_client_options o = {.channel = line_to(keys), .run = h.name};
    if (etd_client_open(h.cx, &o, &c) != ET_OK)
        bail("%s", et_error_get(h.cx)->message);
    return c;
}

static struct etd_answer answer;

static bool
is_answered(struct house *house, struct etd_client **c, int n)
{
    (void)house, (void)n;
    while (etd_client_answer(c[0], &answer))
        if (answer.kind != ETD_RECEIVED)
            return true;
    return false;
}

static const char *
do_it(struct etd_client *c, enum etd_op op)
{
    unsigned char id[ETD_CMD_ID];
    if (etd_client_command(c, op, NULL, NULL, -1, ETD_TTL_MS, id) != ET_OK ||
        !house_drive(&h, &c, 1, is_answered))
        return "no answer";
    return etd_kind_name(answer.kind);
}

static bool
all_cut(struct house *house, struct etd_client **c, int n)
{
    (void)house;
    for (int i = 0; i < n; i++)
        if (etd_client_status(c[i])->link != ETD_LINK_REFUSED)
            return false;
    return true;
}

/* ---- tests ---- */

static int
open_files(void)
{
    int n = 0;
    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void
test_keys_at_tcp(void)
{
    ok(!is_answered_in_clear(address), "who has no key gets no answer");
    const int before = open_files();
    is_str(ask(&stranger), "denied", "a key that is not listed is turned away");
    is_int(open_files(), before,
           "and whoever asked with it has let go of the connection");
    is_str(ask(&expired), "denied", "so is one whose time is over");
    is_str(ask(&viewer), "viewer", "a viewer's is let in as one");
    is_str(ask(&operator_), "operator", "and an operator's");
    struct etd_keys right = server;
    memcpy(server.public_key, stranger.public_key, ETD_KEY_TEXT);
    const char *said = ask_once(&viewer);
    ok(strcmp(said, "viewer") != 0,
       "a server with another key than the pinned is not "
       "spoken to: %s",
       said);
    ok(breaks_off, "and that its key may be another is said");
    server = right;
}

static void
test_viewer(void)
{
    json_t *runs = NULL;
    struct etd_answer a = {0};
    const struct etd_channel_options o = line_to(&viewer);
    ok(etd_worker_runs(h.cx, &o, PATIENCE, &runs) == ET_OK &&
           json_array_size(runs) == 1,
       "a viewer sees what runs there are");
    is_str(json_string_value(json_object_get(json_array_get(runs, 0), "name")), h.name,
           "with their facts");
    json_decref(runs);
    const struct etd_launch_there l = {.recipe = "model: x\n", .bytes = 9};
    ok(etd_worker_start(h.cx, &o, PATIENCE, &l, &a) == ET_OK &&
           a.kind == ETD_REJECTED && a.code == ETD_E_ROLE,
       "and starts nothing: %s", a.text);
    struct etd_client *c = attach(&viewer);
    ok(house_drive(&h, &c, 1, all_equal), "it watches a run");
    ok(house_is_equal(&h, c), "and knows what the log says");
    ok(!etd_client_status(c)->is_operator, "as a viewer");
    is_str(do_it(c, ETD_OP_STOP), "REJECTED", "its commands are rejected");
    is_int(answer.code, ETD_E_ROLE, "for that reason");
    is_int(h.commands, 0, "and reach no supervisor");
    house_tell(&h, 2000);
    ok(house_drive(&h, &c, 1, all_equal), "the stream goes on");
    etd_client_close(&c);
}

/* A clock on which ten minutes go by at the look of that number. */
static int looks, late_look;
static double late;
static double
late_clock(void)
{
    if (++looks == late_look)
        late += 600;
    return eti_system.monotonic() + late;
}

static void
test_late(void)
{
    enum { LOOKS = 32 };
    const struct etd_channel_options o = line_to(&viewer);
    struct eti_seams seams = eti_system;
    struct etd_worker_test t;
    int silent = 0;
    seams.monotonic = late_clock;
    eti_ctx_set_seams(h.cx, &seams);
    for (late_look = 1; late_look <= LOOKS; late_look++) {
        looks = 0;
        if (etd_worker_test(h.cx, &o, PATIENCE, &t) != ET_OK)
            silent += strstr(et_error_get(h.cx)->message, "does not answer") != NULL;
        et_error_clear(h.cx);
    }
    eti_ctx_set_seams(h.cx, &eti_system);
    is_int(silent, 0, "a worker is not silent while who asks it stands still");
}

/* A conversation begun again and again in one batch, each time with a question behind
 * it that is for the run's hub: 40 frames of each before anything is waited for. */
static void
test_hello_again(void)
{
    char hello[512], ping[256];
    struct etd_channel *line;
    struct etd_channel_options o = line_to(&viewer);
    struct etd_out out;
    struct etd_head head = {.kind = ETD_HELLO};
    etd_begin(&out, hello, sizeof hello, &head, 1);
    etd_put_text(&out, "run", h.name);
    size_t n_hello = etd_end(&out);
    head.kind = ETD_PING;
    etd_begin(&out, ping, sizeof ping, &head, 0);
    size_t n_ping = etd_end(&out);
    for (int k = 0; k < 5; k++) {
        if (etd_channel_open(h.cx, &o, &line) != ET_OK)
            bail("no line");
        for (int i = 0; i < 40; i++) {
            (void)etd_channel_send(line, hello, n_hello);
            (void)etd_channel_send(line, ping, n_ping);
        }
        etd_channel_finish(line);
        etd_channel_close(&line);
    }
    is_str(ask(&viewer), "viewer",
           "a viewer that says HELLO 40 times at once does not end the worker");
    is_int(waitpid(worker, NULL, WNOHANG), 0, "which is the process that it was");
}

/* Two runs: ours, and one that has ended or soon will. */
static bool
has_run(const struct etd_channel_options *o)
{
    double end = eti_monotonic(h.cx) + PATIENCE;
    while (eti_monotonic(h.cx) < end) {
        json_t *runs = NULL;
        bool ended = false;
        if (etd_worker_runs(h.cx, o, PATIENCE, &runs) != ET_OK)
            return false;
        for (size_t k = 0; k < json_array_size(runs); k++) {
            const json_t *state = json_object_get(json_array_get(runs, k), "state");
            ended = ended || (json_is_string(state) &&
                              strcmp(json_string_value(state), "finished") == 0);
        }
        json_decref(runs);
        if (ended)
            return true;
        usleep(100000);
    }
    return false;
}

static int
count_runs(const struct etd_channel_options *o)
{
    json_t *runs = NULL;
    if (etd_worker_runs(h.cx, o, PATIENCE, &runs) != ET_OK)
        return -1;
    int n = (int)json_array_size(runs);
    json_decref(runs);
    return n;
}

/* One START in a conversation of its own: the answer, but for RECEIVED. IMPATIENT: none
 * is waited for. */
static void
send_start(const struct etd_channel_options *o, const struct etd_launch_there *l,
           const unsigned char *id, bool impatient, struct etd_answer *a)
{
    char bytes[4096];
    const char *got;
    struct etd_out out;
    struct etd_frame f;
    struct etd_fault fault;
    struct etd_channel *line;
    size_t n;
    struct etd_head head = {.kind = ETD_HELLO};
    double end = eti_monotonic(h.cx) + PATIENCE;
    if (etd_channel_open(h.cx, o, &line) != ET_OK)
        bail("no line");
    etd_begin(&out, bytes, sizeof bytes, &head, 1);
    etd_put_bool(&out, "worker", true);
    (void)etd_channel_send(line, bytes, etd_end(&out));
    head.kind = ETD_START;
    etd_begin(&out, bytes, sizeof bytes, &head, 3);
    etd_put_bin(&out, "id", id, ETD_CMD_ID);
    etd_put_bin(&out, "recipe", l->recipe, l->bytes);
    etd_put_texts(&out, "args", l->args, l->n);
    (void)etd_channel_send(line, bytes, etd_end(&out));
    *a = (struct etd_answer){.kind = ETD_KIND_COUNT};
    while (eti_monotonic(h.cx) < end) {
        struct pollfd p = {.fd = etd_channel_fd(line), .events = POLLIN};
        (void)poll(&p, 1, 100);
        if (etd_channel_receive(line, &got, &n) != ETD_GOT_MESSAGE ||
            etd_read(got, n, &f, &fault) != ET_OK || !etd_answer_read(&f, a))
            continue;
        if (impatient || a->kind != ETD_RECEIVED)
            break;
    }
    etd_channel_close(&line);
}

/* The same command again and again is one run. */
static void
test_once(const struct etd_channel_options *o, const struct etd_launch_there *l)
{
    struct etd_answer a, first;
    unsigned char id[ETD_CMD_ID] = "just this once!";
    int before = count_runs(o);
    send_start(o, l, id, true, &a);
    is_str(etd_kind_name(a.kind), "RECEIVED", "a line breaks while a run is started");
    send_start(o, l, id, false, &first);
    is_str(etd_kind_name(first.kind), "APPLIED", "who asks again gets the answer");
    send_start(o, l, id, false, &a);
    ok(a.kind == ETD_APPLIED && strcmp(a.text, first.text) == 0,
       "and so does who asks a third time: %s", a.text);
    int code;
    stop_worker();
    ok(start_worker("tcp://127.0.0.1:0", false, &code), "another worker listens (%d)",
       code);
    const struct etd_channel_options there = line_to(&operator_);
    send_start(&there, l, id, false, &a);
    ok(a.kind == ETD_APPLIED && strcmp(a.text, first.text) == 0,
       "which knows it as well");
    is_int(count_runs(&there), before + 1, "it is one run");
}

/* What a recipe includes goes along; nothing that is sent gets out of its folder. */
static void
test_files(const struct etd_channel_options *o, const struct etd_launch_there *l)
{
    static const char one[] = "nonsense: 1\n";
    char text[1024];
    int n = snprintf(text, sizeof text, "include: [./parts/one.yaml]\n%s", l->recipe);
    static const char *const out[] = {"../x.yaml", "/tmp/x.yaml",  "parts/../../x.yaml",
                                      "parts/..",  "parts/",       "",
                                      "..",        "recipe.yaml/x"};
    struct etd_answer a = {0};
    struct etd_file_there file = {"./parts/one.yaml", one, strlen(one)};
    struct etd_launch_there with = {.recipe = text,
                                    .bytes = (size_t)n,
                                    .args = l->args,
                                    .n = l->n,
                                    .file = &file,
                                    .n_files = 1};
    ok(etd_worker_start(h.cx, o, 60, &with, &a) == ET_OK && a.kind == ETD_REJECTED &&
           strncmp(a.text, "./parts/one.yaml:1:1: unknown key", 33) == 0,
       "what it includes is read: %s", a.text);
    for (size_t i = 0; i < sizeof out / sizeof *out; i++) {
        file.path = out[i];
        ok(etd_worker_start(h.cx, o, 60, &with, &a) == ET_OK && a.kind == ETD_REJECTED,
           "a file at '%s' is not taken: %s", out[i], a.text);
    }
    ok(access("/tmp/x.yaml", F_OK) != 0, "nor written");
}

static void
test_operator(void)
{
    struct etd_answer a = {0};
    char fingerprint[ETD_FINGERPRINT], who[128];
    const struct etd_channel_options o = line_to(&operator_);
    struct etd_client *c = attach(&operator_);
    ok(house_drive(&h, &c, 1, all_equal) && etd_client_status(c)->is_operator,
       "an operator watches a run");
    is_str(do_it(c, ETD_OP_PAUSE), "APPLIED", "and steers it");
    snprintf(who, sizeof who, "uid:%ld/%s", (long)getuid(),
             etd_key_fingerprint(operator_.public_key, fingerprint));
    is_str(answer.text, who, "under the fingerprint of its key");
    etd_client_close(&c);
    struct etd_launch_there l = {.recipe = "nonsense: [", .bytes = 11};
    ok(etd_worker_start(h.cx, &o, PATIENCE, &l, &a) == ET_OK &&
           a.kind == ETD_REJECTED && a.code / 1000 == 1 &&
           strncmp(a.text, "recipe.yaml:1:", 14) == 0,
       "a recipe it sends is read by a process of its own: E%d, %s", a.code, a.text);
    static const char recipe[] =
        "max_duration: 2ba\nseed: 3\nmodel: {name: mlp, hidden: 16, layers: 1}\n"
        "train_data: {name: synthetic_images, batch_size: 8, num_samples: 32, workers: "
        "0}\n"
        "optimizer: {name: sgd, lr: 0.1}\nlaunch: {worker: elsewhere}\n";
    const char *const changes[] = {"seed=4", "--run_name=twin"};
    l = (struct etd_launch_there){.recipe = recipe,
                                  .bytes = strlen(recipe),
                                  .name = "small",
                                  .args = changes,
                                  .n = 2};
    ok(etd_worker_start(h.cx, &o, PATIENCE, &l, &a) == ET_OK && a.kind == ETD_APPLIED &&
           strncmp(a.text, "twin goes on", 12) == 0,
       "one that is right is a run: %s", a.text);
    ok(has_run(&o), "that the worker then tells of");
    static const char *const wrong[] = {"--run_directory=/tmp/x", "--alg", "x", "-d"};
    for (int i = 0; i < 4; i++) {
        l.args = &wrong[i];
        l.n = 1;
        ok(etd_worker_start(h.cx, &o, PATIENCE, &l, &a) == ET_OK &&
               a.kind == ETD_REJECTED && a.code == ETD_E_ARGUMENT,
           "with no %s of the command line: %s", wrong[i], a.text);
    }
    l.n = 0;
    l.name = "../x";
    ok(etd_worker_start(h.cx, &o, PATIENCE, &l, &a) == ET_OK && a.kind == ETD_REJECTED,
       "nor with a name that is a path: %s", a.text);
    l.name = NULL;
    test_files(&o, &l);
    /* (Where there is one GPU it is a run.) */
    l.gpus = 1;
    ok(etd_worker_start(h.cx, &o, PATIENCE, &l, &a) == ET_OK &&
           (a.kind == ETD_APPLIED || strncmp(a.text, "1 GPU is wanted", 15) == 0),
       "one GPU is asked for, too: %s", a.text);
    l.gpus = 100;
    ok(etd_worker_start(h.cx, &o, PATIENCE, &l, &a) == ET_OK &&
           a.kind == ETD_REJECTED &&
           strncmp(a.text, "100 GPUs are wanted, and there are ", 35) == 0,
       "nor on GPUs that are not there: %s", a.text);
    l = (struct etd_launch_there){
        .recipe = recipe, .bytes = strlen(recipe), .args = changes, .n = 1};
    test_once(&o, &l);
}

/* ---- what it passes on ---- */

/* The next message of LINE, within the time; false: none comes. */
static bool
hear(struct etd_channel *line, struct etd_frame *f)
{
    double end = eti_monotonic(h.cx) + PATIENCE;
    const char *bytes;
    size_t n;
    struct etd_fault fault;
    while (eti_monotonic(h.cx) < end) {
        struct pollfd p = {.fd = etd_channel_fd(line), .events = POLLIN};
        enum etd_got got = etd_channel_receive(line, &bytes, &n);
        house_supervise(&h);
        if (got == ETD_GOT_MESSAGE)
            return etd_read(bytes, n, f, &fault) == ET_OK;
        if (got != ETD_GOT_NOTHING)
            return false;
        (void)poll(&p, 1, 50);
    }
    return false;
}

/* Says HELLO with KEYS for the run NAME, behind record AFTER of run ID (-1: none), and
 * hears the answer, *F. */
static struct etd_channel *
greet(const struct etd_keys *keys, const char *name, const unsigned char *id,
      int64_t after, struct etd_frame *f)
{
    char bytes[ETD_CONTROL_BYTES];
    struct etd_channel *line;
    const struct etd_channel_options o = line_to(keys);
    struct etd_head head = {.kind = ETD_HELLO};
    struct etd_out out;
    memcpy(head.run, id, sizeof head.run);
    etd_begin(&out, bytes, sizeof bytes, &head, 1 + (after >= 0));
    etd_put_text(&out, "run", name);
    if (after >= 0)
        etd_put_int(&out, "after", after);
    size_t n = etd_end(&out);
    if (etd_channel_open(h.cx, &o, &line) != ET_OK ||
        !etd_channel_send(line, bytes, n) || !hear(line, f))
        bail("no answer to HELLO");
    return line;
}

/* Says KIND with KEY being NUMBER, and a SERIES where that is not NULL. */
static void
say(struct etd_channel *line, enum etd_kind kind, const char *key, int64_t number,
    const char *series)
{
    char bytes[256];
    struct etd_out out;
    const struct etd_head head = {.kind = kind};
    etd_begin(&out, bytes, sizeof bytes, &head, 1 + !!series);
    etd_put_int(&out, key, number);
    if (series)
        etd_put_text(&out, "series", series);
    if (!etd_channel_send(line, bytes, etd_end(&out)))
        bail("%s cannot be sent", etd_kind_name(kind));
}

static void
test_passed_on(void)
{
    static const unsigned char none[ETD_RUN_ID];
    unsigned char id[ETD_RUN_ID];
    char text[64];
    struct etd_frame f;
    struct etd_channel *line = greet(&viewer, h.name, none, -1, &f);
    ok(f.head.kind == ETD_WELCOME && !etd_get_bool(&f.body, "goes_on", true),
       "a viewer that comes for the first time begins with a snapshot");
    is_int(etd_get_int(&f.body, "head", -1), h.log.seq, "and is told of all records");
    is_str(etd_get_text(&f.body, "name", text, sizeof text), h.name, "of the run,");
    ok(!etd_get_bool(&f.body, "ended", false) &&
           etd_get_bool(&f.body, "files", false) &&
           etd_get_int(&f.body, "beat_ms", 0) == 1000 &&
           etd_get_int(&f.body, "clients", 0) == ETD_CLIENTS,
       "that it goes on, how often it speaks, how many may come, and of its files");
    memcpy(id, f.head.run, sizeof id);
    etd_channel_close(&line);
    line = greet(&viewer, h.name, id, h.log.seq - 5, &f);
    ok(f.head.kind == ETD_WELCOME && etd_get_bool(&f.body, "goes_on", false),
       "one that comes back goes on");
    while (hear(line, &f) && (int)f.head.kind >= ET_RECORD_COUNT)
        ;
    is_int(f.head.hseq, h.log.seq - 4, "with the next record");
    say(line, ETD_NACK, "from", h.log.seq - 9, NULL);
    while (hear(line, &f) &&
           ((int)f.head.kind >= ET_RECORD_COUNT || f.head.hseq > h.log.seq - 9))
        ;
    is_int(f.head.hseq, h.log.seq - 9, "it is sent those again that it says it lacks");
    say(line, ETD_HIST, "id", 7, "loss/train/total");
    while (hear(line, &f) && f.head.kind != ETD_HIST)
        ;
    is_int(etd_get_int(&f.body, "id", -1), 7, "and told of the run's history");
    etd_channel_close(&line);
    line = greet(&viewer, "no-such-run", id, -1, &f);
    ok(f.head.kind == ETD_REFUSE, "a run that is not there is refused,");
    is_str(etd_get_text(&f.body, "code", text, sizeof text), "NO_RUN",
           "though another goes on");
    etd_channel_close(&line);
    struct etd_client *c = attach(&operator_);
    ok(house_drive(&h, &c, 1, all_live), "an operator");
    is_str(do_it(c, ETD_OP_TAKE), "APPLIED", "takes the run");
    const struct etd_keys *const keys[] = {&operator_, &viewer};
    for (int i = 0; i < 2; i++) {
        line = greet(keys[i], h.name, id, -1, &f);
        ok(etd_get_text(&f.body, "lease", text, sizeof text)[0],
           "who comes then is told who has it: %s", text);
        is_int(etd_get_bool(&f.body, "mine", i != 0), i == 0,
               "and whether that is his key");
        is_str(etd_get_text(&f.body, "role", text, sizeof text),
               i == 0 ? "operator" : "viewer", "and what his key may do");
        etd_channel_close(&line);
    }
    etd_client_close(&c);
}

static void
test_removed(void)
{
    struct etd_client *c = attach(&viewer);
    ok(house_drive(&h, &c, 1, all_equal), "a viewer watches");
    put_file("authorized_keys", 0600, authorized("o"));
    ok(house_drive(&h, &c, 1, all_cut),
       "its key is taken out of the file, and it is cut off");
    is_str(etd_client_status(c)->code, "KEY", "and told why");
    etd_client_close(&c);
    is_str(ask(&viewer), "denied", "it does not come in again");
    is_str(ask(&operator_), "operator", "another does");
    put_file("authorized_keys", 0644, authorized("vo"));
    is_str(becomes(&operator_, "denied"), "denied",
           "a file that others can read lets nobody in");
    put_file("authorized_keys", 0600, authorized("vo"));
    is_str(becomes(&operator_, "operator"), "operator", "until it is right again");
}

static void
test_other_role(void)
{
    struct etd_client *c[] = {attach(&viewer), attach(&operator_)};
    ok(house_drive(&h, c, 2, all_equal), "a viewer and an operator watch");
    put_file("authorized_keys", 0600, authorized("VO"));
    ok(house_drive(&h, c, 2, all_cut), "each is given the other's role, and cut off");
    ok(strcmp(etd_client_status(c[0])->code, "KEY") == 0 &&
           strcmp(etd_client_status(c[1])->code, "KEY") == 0,
       "and told why");
    etd_client_close(&c[0]);
    etd_client_close(&c[1]);
    is_str(ask(&viewer), "operator", "who was a viewer comes in again as an operator");
    is_str(ask(&operator_), "viewer", "and who was an operator as a viewer");
    put_file("authorized_keys", 0600, authorized("vo"));
    is_str(becomes(&operator_, "operator"), "operator", "until it is as it was");
}

/* What "etude __relay" does: this program is called so, too. */
static int
relay(void)
{
    struct et_ctx *cx;
    char folder[4096];
    if (et_ctx_new(&cx) != ET_OK)
        return 127;
    et_status status = etd_worker_relay(cx, "/proc/self/exe",
                                        etd_endpoint_folder(folder, sizeof folder),
                                        STDIN_FILENO, STDOUT_FILENO);
    et_ctx_free(&cx);
    return status == ET_OK ? 0 : 1;
}

/* By ssh, which here is a program that runs the rest of its words. */
static void
test_ssh(void)
{
    char path[512], program[4096], text[1024], who[64];
    const char *old = getenv("PATH");
    struct etd_client *c;
    if (!realpath("/proc/self/exe", program))
        bail("this program is not found");
    snprintf(path, sizeof path, "%s/ssh", config);
    FILE *f = fopen(path, "w");
    fprintf(f, "#!/bin/sh\nshift 4\ncd '%s' || exit 1\nexec '%s' \"$@\"\n", h.folder,
            program);
    fclose(f);
    chmod(path, 0755);
    snprintf(text, sizeof text, "%s:%s", config, old ? old : "/bin:/usr/bin");
    setenv("PATH", text, 1);
    const struct etd_client_options o = {.channel = {.target = "ssh://lab"},
                                         .run = h.name};
    if (etd_client_open(h.cx, &o, &c) != ET_OK)
        bail("%s", et_error_get(h.cx)->message);
    ok(house_drive(&h, &c, 1, all_equal), "a run is watched by ssh");
    house_tell(&h, 3000);
    ok(house_drive(&h, &c, 1, all_equal) && house_is_equal(&h, c),
       "and the stream goes on");
    is_str(do_it(c, ETD_OP_PAUSE), "APPLIED", "who may log in may steer");
    snprintf(who, sizeof who, "uid:%ld/ssh", (long)getuid());
    is_str(answer.text, who, "and it is known that it came by ssh");
    etd_client_close(&c);
    setenv("PATH", old ? old : "/bin:/usr/bin", 1);
}

/* Another user of this machine, at the socket PATH. */
static void
test_other_user_at(const char *path, const char *whose)
{
    char folder[128], there[300];
    snprintf(folder, sizeof folder, "%s/etude", h.folder);
    snprintf(there, sizeof there, "ipc://%s", path);
    for (int i = 0; i < 2; i++) {
        int status = 0;
        if (i == 1) { /* as if the folder's mode were worth nothing */
            chmod(h.folder, 0755);
            chmod(folder, 0755);
            chmod(path, 0777);
        }
        pid_t child = fork();
        if (child == 0) {
            if (setgid(65534) != 0 || setuid(65534) != 0)
                _exit(3);
            _exit(is_answered_in_clear(there));
        }
        waitpid(child, &status, 0);
        ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "another user %s the %s",
           i ? "is not answered where he reaches" : "does not reach", whose);
        chmod(folder, 0700);
        chmod(path, 0700);
    }
    ok(is_answered_in_clear(there), "its owner is answered");
}

static void
test_other_user(void)
{
    char path[256];
    snprintf(path, sizeof path, "%s/etude/_worker.sock", h.folder);
    const struct etd_channel_options o = {.target = path};
    struct etd_worker_info info;
    ok(etd_worker_info(h.cx, &o, PATIENCE, &info) == ET_OK &&
           strcmp(info.role, "operator") == 0,
       "the owner is an operator at the local socket");
    if (geteuid() != 0) {
        skip(6, "root alone can be another user");
        return;
    }
    test_other_user_at(path, "worker");
    test_other_user_at(h.socket, "hub");
}

static void
is_unsafe(const char *listen, int code, const char *what)
{
    int got = 0;
    bool started = start_worker(listen, true, &got);
    ok(!started, "%s: it does not start", what);
    if (started)
        stop_worker();
    is_int(got, code, "exit code %d", code);
}

static void
test_unsafe(void)
{
    const char *any = "tcp://127.0.0.1:0";
    char path[256], taken[128];
    int code;
    put_file("authorized_keys", 0644, authorized("vo"));
    is_unsafe(any, 77, "keys that others can read");
    put_file("authorized_keys", 0600, "");
    is_unsafe(any, 77, "no key at all");
    put_file("authorized_keys", 0600, authorized(""));
    is_unsafe(any, 77, "none that is valid today");
    put_file("authorized_keys", 0600, "viewer 123 me\n");
    is_unsafe(any, 77, "a line that is wrong");
    snprintf(path, sizeof path, "%s/authorized_keys", config);
    unlink(path);
    is_unsafe(any, 77, "no file of keys");
    put_file("authorized_keys", 0600, authorized("vo"));
    is_unsafe("tcp://*:0", 77, "a wildcard that is not written out");
    is_unsafe("ipc:///tmp/x", 77, "an address that is not TCP");
    snprintf(path, sizeof path, "%s/curve.key", config);
    chmod(path, 0644);
    is_unsafe(any, 77, "a secret that others can read");
    chmod(path, 0600);
    ok(start_worker(any, true, &code), "all in order, and it starts");
    snprintf(taken, sizeof taken, "%s", address);
    pid_t first = worker;
    int first_out = from_worker;
    is_unsafe(NULL, 73, "a second one of this user");
    worker = first;
    from_worker = first_out;
    is_int(stop_worker(), 0, "it ends when it is asked to");
    ok(strncmp(taken, "tcp://127.0.0.1:", 16) == 0, "(it was at %s)", taken);
}

int
main(int argc, char **argv)
{
    char path[256];
    int code = 0;
    if (argc == 2 && strcmp(argv[1], ETD_RELAY_COMMAND) == 0)
        return relay();
    house_begin(&h);
    house_tell(&h, 3000);
    snprintf(config, sizeof config, "%s/config", h.folder);
    mkdir(config, 0700);
    setenv("ETUDE_CONFIG_DIR", config, 1);
    /* Built without oneDNN, the run that is started computes with "ref". */
    const char *build = getenv("ET_BUILDDIR");
    snprintf(path, sizeof path, "%s/libetude-cpu.la", build ? build : ".");
    if (access(path, F_OK) != 0)
        setenv("ETUDE_DEVICE", "ref", 1);
    struct etd_keys *all[] = {&server, &viewer, &operator_, &expired, &stranger};
    for (int i = 0; i < 5; i++)
        if (etd_keys_draw(h.cx, all[i]) != ET_OK)
            bail("%s", et_error_get(h.cx)->message);
    snprintf(path, sizeof path, "%s/curve.key", config);
    if (etd_keys_write(h.cx, path, &server) != ET_OK || !house_start(&h, &code))
        bail("no key, or no hub");
    test_unsafe();
    ok(start_worker("tcp://127.0.0.1:0", false, &code), "a worker listens (%d)", code);
    test_keys_at_tcp();
    test_viewer();
    test_hello_again();
    test_late();
    test_operator();
    test_removed();
    test_other_role();
    test_ssh();
    test_other_user();
    test_passed_on();
    is_int(stop_worker(), 0, "it ends");
    house_end(&h);
    return done();
}
