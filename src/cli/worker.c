/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c: `etude worker`: this host's service, and those of others that are known. */
#include "config.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/keeper.h"
#include "cli/workbench.h"
#include "core/base/folders.h"
#include "core/base/seams.h"
#include "dist/wire/endpoint.h"
#include "dist/wire/ssh.h"
#include "dist/worker/target.h"
#include "dist/worker/worker.h"
#include "tui/workers.h"

static const double TEST_SECONDS = 15; /* for that of a test: its GPUs are asked, too */
static const double PATIENCE = 5;      /* seconds for a worker's answer */
static const double SSH_SECONDS = 120; /* and for whoever types a password for ssh */

/* ---- files ---- */

/* FOLDER/NAME of the user's files. Returns BUF. */
static const char *
user_file(const char *name, char *buf, size_t size)
{
    char folder[PATH_MAX - 64];
    snprintf(buf, size, "%s/%s", cli_user_folder(folder, sizeof folder), name);
    return buf;
}

static const char *
key_path(const struct cli *c, char *buf, size_t size)
{
    if (!c->opt.key)
        return user_file("curve.key", buf, size);
    snprintf(buf, size, "%s", c->opt.key);
    return buf;
}

static int
fail(struct cli *c, et_status status)
{
    return cli_fail_status(c, ETI_STAGE_OUTPUT, status);
}

/* ---- keys ---- */

/* A key as text, or the public one of a file of keys. */
static bool
read_key(const char *text, char key[ETD_KEY_TEXT])
{
    char line[256];
    FILE *f = fopen(text, "re"); /* first: a path of 40 characters looks like a key */
    bool found = false;
    if (!f && etd_key_is(text)) {
        memcpy(key, text, ETD_KEY_TEXT);
        return true;
    }
    while (f && !found && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\r\n")] = '\0';
        const char *word = strncmp(line, "public ", 7) == 0 ? line + 7 : line;
        found = etd_key_is(word);
        if (found)
            memcpy(key, word, ETD_KEY_TEXT);
    }
    if (f)
        fclose(f);
    return found;
}

/* The key TEXT of a worker: itself, in a file, or asked of ssh://HOST. */
static int
take_key(struct cli *c, const char *text, char key[ETD_KEY_TEXT])
{
    static const char hint[] = "`etude worker keygen` on that host shows it, and "
                               "ssh://HOST in its place asks for it";
    if (!text)
        return cli_fail(c, CLI_E_KEYS, hint,
                        "tcp:// needs the worker's public key: worker add NAME %s KEY",
                        c->arg[2]);
    if (strncmp(text, "ssh://", 6) == 0) {
        et_status status = etd_ssh_key(c->cx, text + 6, SSH_SECONDS, key);
        if (status == ET_ENOENT && et_error_get(c->cx)->code == ETD_E_KEYS)
            et_hint(c->cx, "etude worker keygen makes one there");
        return status == ET_OK ? CLI_OK : fail(c, status);
    }
    return read_key(text, key) ? CLI_OK
                               : cli_fail(c, CLI_E_KEYS, hint,
                                          "'%s' is no key and no file of one", text);
}

/* This user's pair, drawn if there was none (*MADE); its secret half is not kept. */
static et_status
own_key(struct cli *c, char path[PATH_MAX], struct etd_keys *keys, bool *made)
{
    *made = true;
    (void)eti_make_user_folders(key_path(c, path, PATH_MAX), 0700);
    et_status status = etd_keys_draw(c->cx, keys);
    if (status == ET_OK)
        status = etd_keys_write(c->cx, path, keys);
    if (status == ET_ECANCELED) { /* it is there, and stays */
        et_error_clear(c->cx);
        *made = false;
        status = etd_keys_read(c->cx, path, keys);
    }
    memset(keys->secret, 0, sizeof keys->secret);
    return status;
}

static int
keygen(struct cli *c)
{
    char path[PATH_MAX], fingerprint[ETD_FINGERPRINT];
    struct etd_keys keys = {0};
    bool made;
    et_status status = own_key(c, path, &keys, &made);
    if (status != ET_OK)
        return fail(c, status);
    etd_key_fingerprint(keys.public_key, fingerprint);
    if (c->opt.json)
        return cli_print_json(json_pack("{s:o, s:s, s:s, s:b}", "path",
                                        cli_json_text(path), "public", keys.public_key,
                                        "fingerprint", fingerprint, "made", made));
    et_print(stdout, "%s %s\n", path,
             made ? "was made: its second half is secret" : "is there");
    et_print(stdout, "public key   %s\nfingerprint  %s\n\n", keys.public_key,
             fingerprint);
    et_print(
        stdout,
        "To let this key in at another host, there:\n"
        "  etude worker allow '%s'              to see its runs\n"
        "  etude worker allow '%s' operator     also to steer and start them: as good "
        "as a login\n"
        "It prints the command that adds that host here.\n",
        keys.public_key, keys.public_key);
    return CLI_OK;
}

/* Lets the key of somebody else in; the other half of the pairing is printed. */
static int
allow(struct cli *c)
{
    char path[PATH_MAX], own[PATH_MAX], fingerprint[ETD_FINGERPRINT], host[256] = "";
    char key[ETD_KEY_TEXT];
    struct etd_keys keys = {0};
    const char *role = c->n_args > 2 ? c->arg[2] : "viewer", *had;
    const char *whose = c->n_args > 3 ? c->arg[3] : NULL;
    bool made, is_operator = strcmp(role, "operator") == 0;
    char comment[64];
    if (!is_operator && strcmp(role, "viewer") != 0)
        return cli_fail(c, CLI_E_OPERAND,
                        "etude worker allow KEY viewer|operator [WHOSE]",
                        "a key is let in as viewer or operator, not '%s'", role);
    if (whose &&
        (strpbrk(whose, "#\r\n") || !*whose || strlen(whose) >= sizeof comment))
        return cli_fail(c, CLI_E_OPERAND, NULL,
                        "whose key it is has 1 to %zu characters, without #",
                        sizeof comment - 1);
    int code = take_key(c, c->arg[1], key);
    if (code != CLI_OK)
        return code;
    etd_key_fingerprint(key, fingerprint);
    snprintf(comment, sizeof comment, "%s", whose ? whose : fingerprint);
    et_status status = own_key(c, own, &keys, &made);
    if (status == ET_OK && strcmp(keys.public_key, key) == 0)
        return cli_fail(c, CLI_E_KEYS,
                        "the one of the other machine is wanted: "
                        "`etude worker keygen` there shows it",
                        "that is this machine's own key");
    (void)eti_make_user_folders(user_file("authorized_keys", path, sizeof path), 0700);
    if (status == ET_OK)
        status = etd_authorized_allow(c->cx, path, key, is_operator, comment, &had);
    if (status != ET_OK)
        return fail(c, status);
    if (gethostname(host, sizeof host - 1) != 0)
        snprintf(host, sizeof host, "HOST");
    if (c->opt.json)
        return cli_print_json(json_pack("{s:s, s:s, s:s, s:s, s:s?}", "path", path,
                                        "key", key, "fingerprint", fingerprint, "role",
                                        role, "was", *had ? had : NULL));
    et_print(stdout, "%s is let in as %s%s%s: %s\n", fingerprint, role,
             *had ? ", was " : "", had, path);
    et_print(stdout,
             "A worker that listens has read it within two seconds; else: etude worker "
             "serve "
             "--listen tcp://ADDRESS:PORT\n\n"
             "On the other machine, with the address at which this one listens:\n"
             "  etude worker add %s tcp://ADDRESS:PORT '%s'\n",
             host, keys.public_key);
    return CLI_OK;
}

/* The public half alone, for who asks by ssh (dist/wire/ssh.h) or in a pipe. */
static int
show_key(struct cli *c)
{
    char path[PATH_MAX], fingerprint[ETD_FINGERPRINT];
    struct etd_keys keys = {0};
    et_status status = etd_keys_read(c->cx, key_path(c, path, sizeof path), &keys);
    memset(keys.secret, 0, sizeof keys.secret);
    if (status != ET_OK)
        return cli_fail_status(c, ETI_STAGE_DATA, status);
    if (c->opt.json)
        return cli_print_json(json_pack(
            "{s:s, s:s, s:s}", "path", path, "public", keys.public_key, "fingerprint",
            etd_key_fingerprint(keys.public_key, fingerprint)));
    et_print(stdout, "%s\n", keys.public_key);
    return CLI_OK;
}

/* ---- serve ---- */

static void
say_ready(void *data, const char *address, const char *fingerprint)
{
    const struct cli *c = data;
    char path[ETD_SOCKET_PATH] = "";
    if (etd_endpoint_path(c->cx, ETD_WORKER_SOCKET, path) != ET_OK)
        et_error_clear(c->cx);
    if (c->opt.json)
        (void)cli_print_json(json_pack("{s:o, s:s?, s:s}", "socket",
                                       cli_json_text(path), "address", address,
                                       "fingerprint", fingerprint));
    else if (address)
        et_print(stdout, "listening at %s, key %s\n", address, fingerprint);
    else
        et_print(stdout, "listening at %s\n", path);
    fflush(stdout);
}

static int
serve(struct cli *c)
{
    char key[PATH_MAX], authorized[PATH_MAX], folder[PATH_MAX];
    const struct etd_serve o = {
        .listen = c->opt.listen,
        .key = key_path(c, key, sizeof key),
        .authorized = user_file("authorized_keys", authorized, sizeof authorized),
        .program = "/proc/self/exe", /* also when the file is replaced meanwhile */
        .folder = etd_endpoint_folder(folder, sizeof folder),
        .stop = cli_signal_interrupt(),
        .ready = say_ready,
        .data = c,
    };
    int code;
    cli_signals_catch(0);
    if (!cli_keep(c->cx, o.stop, &code))
        return code;
    et_status status = etd_worker_serve(c->cx, &o);
    return status == ET_OK ? CLI_OK : fail(c, status);
}

/* ---- those that are known ---- */

/* The list, or NULL with *EXIT. The caller frees it with et_free. */
static struct etd_worker_list *
read_list(struct cli *c, int *exit)
{
    char path[PATH_MAX];
    void *block;
    et_status status = et_alloc(c->cx, sizeof(struct etd_worker_list), &block);
    if (status == ET_OK) {
        status = etd_workers_read(c->cx, user_file("workers.yaml", path, sizeof path),
                                  block);
        if (status == ET_OK)
            return block;
        et_free(c->cx, block);
    }
    *exit = fail(c, status);
    return NULL;
}

static int
add(struct cli *c)
{
    struct etd_worker w = {0};
    char path[PATH_MAX], old[ETD_FINGERPRINT], new[ETD_FINGERPRINT];
    time_t now = (time_t)eti_wall(c->cx);
    struct tm day;
    int code = CLI_OK;
    const char *name = c->arg[1], *address = c->arg[2];
    const char *key = c->n_args > 3 ? c->arg[3] : NULL;
    bool tcp = strncmp(address, "tcp://", 6) == 0;
    if (et_run_name_check(c->cx, name) != ET_OK) {
        et_error_clear(c->cx);
        return cli_fail(c, CLI_E_OPERAND, NULL,
                        "a worker's name has letters, digits and . _ - alone");
    }
    if ((!tcp && strncmp(address, "ssh://", 6) != 0) || strpbrk(address, "\"\\ ,}") ||
        strlen(address) >= sizeof w.address)
        return cli_fail(c, CLI_E_OPERAND, NULL,
                        "an address is tcp://HOST:PORT or ssh://HOST");
    if (tcp && etd_address_check_port(c->cx, address, 1) != ET_OK)
        return cli_fail_status(c, ETI_STAGE_DATA, ET_EINVAL);
    if (tcp)
        code = take_key(c, key, w.key);
    if (code != CLI_OK)
        return code;
    if (!tcp && key)
        return cli_fail(c, CLI_E_OPERAND, NULL,
                        "ssh:// takes no key: ssh knows its own");
    struct etd_worker_list *list = read_list(c, &code);
    if (!list)
        return code;
    const struct etd_worker *known = etd_workers_find(list, name);
    if (known && strcmp(known->key, w.key) != 0)
        code = cli_fail(c, CLI_E_KEYS, "etude worker remove it first, if that is right",
                        "%s is pinned to %s, and this key is %s", name,
                        known->key[0] ? etd_key_fingerprint(known->key, old) : "no key",
                        w.key[0] ? etd_key_fingerprint(w.key, new) : "none");
    et_free(c->cx, list);
    if (code != CLI_OK)
        return code;
    snprintf(w.name, sizeof w.name, "%s", name);
    snprintf(w.address, sizeof w.address, "%s", address);
    if (!localtime_r(&now, &day) ||
        strftime(w.since, sizeof w.since, "%Y-%m-%d", &day) == 0)
        w.since[0] = '\0';
    (void)eti_make_user_folders(user_file("workers.yaml", path, sizeof path), 0700);
    et_status status = etd_workers_write(c->cx, path, name, &w);
    if (status != ET_OK)
        return fail(c, status);
    if (tcp)
        et_print(stdout, "%s is %s, pinned to %s\n", name, address,
                 etd_key_fingerprint(w.key, new));
    else
        et_print(stdout, "%s is %s\n", name, address);
    return CLI_OK;
}

static int
remove_one(struct cli *c)
{
    char path[PATH_MAX];
    int code = CLI_OK;
    struct etd_worker_list *list = read_list(c, &code);
    if (!list)
        return code;
    bool known = etd_workers_find(list, c->arg[1]) != NULL;
    et_free(c->cx, list);
    if (!known)
        return cli_fail(c, CLI_E_WORKER, "etude worker list shows them",
                        "no worker is called '%s'", c->arg[1]);
    et_status status = etd_workers_write(
        c->cx, user_file("workers.yaml", path, sizeof path), c->arg[1], NULL);
    return status == ET_OK ? CLI_OK : fail(c, status);
}

/* ---- asking them ---- */

/* Where the worker NAME is, which is "local", known, or an address. */
static et_status
find(struct cli *c, const char *name, struct etd_target *t)
{
    char folder[PATH_MAX - 64];
    bool is = true;
    *t = (struct etd_target){0};
    if (strcmp(name, "local") == 0)
        return etd_endpoint_path(c->cx, ETD_WORKER_SOCKET, t->address);
    ET_TRY(
        etd_target_parse(c->cx, name, cli_user_folder(folder, sizeof folder), t, &is));
    return is ? ET_OK
              : ETD_FAIL(c->cx, ET_ENOENT, WORKER, "no worker is called '%s'", name);
}

static void
print_test(const char *name, const struct etd_worker_test *t)
{
    char host[256], version[64], role[32], disk[32], speed[32], used[32], total[32];
    const struct etd_worker_info *i = &t->info;
    et_print(stdout, "%s  %s  etude %s  role %s  %lld cores  %lld GPUs  %.1f ms\n",
             name, et_visible(host, sizeof host, i->name, strlen(i->name)),
             et_visible(version, sizeof version, i->version, strlen(i->version)),
             et_visible(role, sizeof role, i->role, strlen(i->role)),
             (long long)i->cores, (long long)i->gpus, 1000 * i->rtt);
    et_print(stdout, "  up %lldd  disk %s free  %s/s from there  %lld runs go on%s%s\n",
             (long long)(t->host.uptime / 86400),
             cli_bytes((double)t->host.disk_free, disk, sizeof disk),
             cli_bytes(t->bandwidth, speed, sizeof speed), (long long)t->host.runs,
             *t->host.run ? ", the newest " : "", t->host.run);
    for (int k = 0; k < t->host.n_gpus; k++) {
        const struct etd_gpu *g = &t->host.gpu[k];
        char util[16] = "-";
        if (isfinite(g->util))
            snprintf(util, sizeof util, "%.0f%%", 100 * g->util);
        et_print(stdout, "  GPU %d  %s  %s  %s of %s  driver %s\n", k, g->name, util,
                 isfinite(g->used) ? cli_bytes(g->used, used, sizeof used) : "-",
                 isfinite(g->total) ? cli_bytes(g->total, total, sizeof total) : "-",
                 t->host.driver);
    }
}

static json_t *
real_or_null(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

static int
print_test_json(const char *name, const struct etd_worker_test *t)
{
    const struct etd_worker_info *i = &t->info;
    json_t *gpus = json_array();
    for (int k = 0; k < t->host.n_gpus; k++) {
        const struct etd_gpu *g = &t->host.gpu[k];
        (void)json_array_append_new(
            gpus, json_pack("{s:s, s:o, s:o, s:o}", "name", g->name, "util",
                            real_or_null(g->util), "used", real_or_null(g->used),
                            "total", real_or_null(g->total)));
    }
    return cli_print_json(json_pack(
        "{s:s, s:s, s:s, s:s, s:I, s:I, s:f, s:I, s:I, s:I, s:s, s:s, s:f, s:o}",
        "worker", name, "host", i->name, "version", i->version, "role", i->role,
        "cores", (json_int_t)i->cores, "gpus", (json_int_t)i->gpus, "rtt_ms",
        1000 * i->rtt, "uptime_s", (json_int_t)t->host.uptime, "disk_free",
        (json_int_t)t->host.disk_free, "runs", (json_int_t)t->host.runs, "run",
        t->host.run, "driver", t->host.driver, "bandwidth", t->bandwidth, "gpu", gpus));
}

static int
test(struct cli *c)
{
    struct etd_worker_test t;
    struct etd_target to;
    et_status status = find(c, c->arg[1], &to);
    const struct etd_client_options o = etd_target_options(&to);
    if (status == ET_OK)
        status = etd_worker_test(c->cx, &o.channel, TEST_SECONDS, &t);
    if (status != ET_OK)
        return fail(c, status);
    if (c->opt.json)
        return print_test_json(c->arg[1], &t);
    print_test(c->arg[1], &t);
    return CLI_OK;
}

/* What the worker NAME says at once. */
static et_status
ask(struct cli *c, const char *name, struct etd_worker_info *info)
{
    struct etd_target t;
    et_status status = find(c, name, &t);
    const struct etd_client_options o = etd_target_options(&t);
    return status == ET_OK ? etd_worker_info(c->cx, &o.channel, PATIENCE, info)
                           : status;
}

/* A row of the list: its state in one word, and why. */
static void
print_row(struct cli *c, const char *name, const char *address, json_t *rows)
{
    struct etd_worker_info info = {0};
    char why[ET_VISIBLE_MAX + 1] = "", version[64];
    et_status status = ask(c, name, &info);
    const struct et_error *e = et_error_get(c->cx);
    const char *state = status == ET_OK             ? "ready"
                        : e->code == CLI_E_KEYS     ? "refused"
                        : e->code == CLI_E_PROTOCOL ? "version"
                                                    : "unreachable";
    if (status != ET_OK)
        et_visible(why, sizeof why, e->message, strlen(e->message));
    const bool is_alone =
        strcmp(name, "local") == 0 && strcmp(state, "unreachable") == 0;
    et_error_clear(c->cx);
    if (c->opt.json) {
        (void)json_array_append_new(
            rows, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:f}",
                            "name", name, "address", address, "state", state, "why",
                            why, "host", info.name, "version", info.version, "role",
                            info.role, "cores", (json_int_t)info.cores, "gpus",
                            (json_int_t)info.gpus, "rtt_ms", 1000 * info.rtt));
        return;
    }
    et_print(stdout, "%-12s %-28s %-12s", name, address, is_alone ? "ready" : state);
    if (is_alone)
        et_print(stdout, " %s\n", TUI_WORKER_ALONE);
    else if (status == ET_OK)
        et_print(
            stdout, " %-8s %4lld cores %3lld GPUs %7.1f ms\n",
            et_visible(version, sizeof version, info.version, strlen(info.version)),
            (long long)info.cores, (long long)info.gpus, 1000 * info.rtt);
    else
        et_print(stdout, " %s\n", why);
}

static int
list(struct cli *c)
{
    int code = CLI_OK;
    struct etd_worker_list *known = read_list(c, &code);
    if (!known)
        return code;
    const char *only = c->n_args > 1 ? c->arg[1] : NULL;
    const struct etd_worker *one = only ? etd_workers_find(known, only) : NULL;
    json_t *rows = json_array();
    if (!only || strcmp(only, "local") == 0)
        print_row(c, "local", "ipc", rows);
    else if (one)
        print_row(c, one->name, one->address, rows);
    else
        code = cli_fail(c, CLI_E_WORKER, "etude worker list shows them",
                        "no worker is called '%s'", only);
    for (int i = 0; i < known->n && !only; i++)
        print_row(c, known->worker[i].name, known->worker[i].address, rows);
    et_free(c->cx, known);
    if (code != CLI_OK) {
        json_decref(rows);
        return code;
    }
    if (c->opt.json)
        return cli_print_json(rows);
    json_decref(rows);
    return CLI_OK;
}

/* What runs there are. */
static int
runs(struct cli *c)
{
    struct etd_target t;
    json_t *all = NULL, *one;
    size_t i;
    et_status status = find(c, c->arg[1], &t);
    const struct etd_client_options o = etd_target_options(&t);
    if (status == ET_OK)
        status = etd_worker_runs(c->cx, &o.channel, PATIENCE, &all);
    if (status != ET_OK)
        return fail(c, status);
    if (c->opt.json)
        return cli_print_json(all);
    json_array_foreach(all, i, one)
    {
        char name[ET_RUN_NAME * 4], state[64];
        et_print(stdout, "%-24s %s\n", cli_fact(one, "name", name, sizeof name),
                 cli_fact(one, "state", state, sizeof state));
    }
    json_decref(all);
    return CLI_OK;
}

int
cli_worker(struct cli *c)
{
    static const struct {
        const char *name;
        int least, most; /* operands behind it */
        bool serves, keys;
        int (*run)(struct cli *c);
    } actions[] = {
        {"serve", 0, 0, true, true, serve},  {"list", 0, 1, false, false, list},
        {"add", 2, 3, false, false, add},    {"remove", 1, 1, false, false, remove_one},
        {"test", 1, 1, false, false, test},  {"keygen", 0, 0, false, true, keygen},
        {"runs", 1, 1, false, false, runs},  {"key", 0, 0, false, true, show_key},
        {"allow", 1, 3, false, true, allow},
    };
    const char *what = c->n_args > 0 ? c->arg[0] : "";
    int n = c->n_args - 1;
    if (c->opt.dump_screen && (n < 0 || (n == 0 && strcmp(what, "list") == 0)))
        return cli_workbench(c, TUI_IN_workers, NULL, NULL);
    if (c->opt.dump_screen)
        return cli_fail(c, CLI_E_OPTION, NULL,
                        "--dump-screen does not apply to 'worker %s'", what);
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        if (strcmp(what, actions[i].name) != 0)
            continue;
        if (n < actions[i].least || n > actions[i].most)
            break;
        if ((c->opt.listen && !actions[i].serves) || (c->opt.key && !actions[i].keys))
            return cli_fail(c, CLI_E_OPTION, NULL, "--%s does not apply to 'worker %s'",
                            c->opt.listen ? "listen" : "key", what);
        return actions[i].run(c);
    }
    return cli_fail(
        c, CLI_E_OPERAND, NULL,
        "worker needs one of: serve, list [WORKER], add NAME ADDRESS [KEY], "
        "remove WORKER, test WORKER, runs WORKER, keygen, key, allow KEY");
}
