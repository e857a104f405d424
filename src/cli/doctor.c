/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.c: `etude doctor`: what this machine has for training, what is wrong with it,
 * and what to do about that. Nothing is changed: a socket is made, and removed. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/graph/gpu_libs.h"
#include "dist/wire/endpoint.h"
#include "dist/wire/keys.h"
#include "tui/glyphs.h"
#include "tui/kind.h"

/* Less than this is told: a small model's optimizer and plan; a few checkpoints. */
static const double LITTLE_MEMORY = 1e9, LITTLE_DISK = 2e9, NO_DISK = 50e6;
/* The first commit of this program: no clock that is right is before it. */
static const time_t BORN = 1735689600; /* 2025-01-01 UTC */

enum state { GOOD, NOTE, PROBLEM };
static const char *const state_words[] = {"ok", "note", "problem"};

/* Findings are added in order; each is one part of the machine. */
struct doctor {
    struct cli *c;
    json_t *findings;
    int problems;
};

static void find(struct doctor *d, const char *part, enum state state,
                 const char *advice, const char *fmt, ...) ET_PRINTF(5, 6);

/* ADVICE: what to do; NULL where there is nothing. */
static void
find(struct doctor *d, const char *part, enum state state, const char *advice,
     const char *fmt, ...)
{
    char raw[1024], text[ET_VISIBLE_MAX + 1], what[ET_VISIBLE_MAX + 1] = "";
    va_list args;
    va_start(args, fmt);
    vsnprintf(raw, sizeof raw, fmt, args);
    va_end(args);
    et_visible(text, sizeof text, raw, strlen(raw));
    if (advice)
        et_visible(what, sizeof what, advice, strlen(advice));
    d->problems += state == PROBLEM;
    json_array_append_new(d->findings,
                          json_pack("{s:s, s:s, s:s, s:s}", "part", part, "state",
                                    state_words[state], "text", text, "advice", what));
}

/* What stands in the context as an error, with its hint or ADVICE; then cleared. */
static void
find_error(struct doctor *d, const char *part, enum state state, const char *advice)
{
    const struct et_error *e = et_error_get(d->c->cx);
    char hint[sizeof e->hint], message[sizeof e->message];
    snprintf(hint, sizeof hint, "%s", e->hint);
    snprintf(message, sizeof message, "%s", e->message);
    et_error_clear(d->c->cx);
    find(d, part, state, *hint ? hint : advice, "%s", message);
}

/* Reads the first line of the file at PATH. False: it is empty or cannot be read. */
static bool
first_line(const char *path, char *buf, size_t size)
{
    FILE *f = fopen(path, "re");
    bool read = f && fgets(buf, (int)size, f);
    if (f)
        fclose(f);
    if (read)
        buf[strcspn(buf, "\n")] = '\0';
    return read;
}

/* ---- devices ---- */

/* Has the machine a display or compute controller of NVIDIA's on its PCI bus? */
static bool
has_nvidia(void)
{
    static const char root[] = "/sys/bus/pci/devices";
    DIR *dir = opendir(root);
    bool found = false;
    for (struct dirent *e; dir && !found && (e = readdir(dir));) {
        char path[PATH_MAX], vendor[16] = "", class[16] = "";
        snprintf(path, sizeof path, "%s/%s/vendor", root, e->d_name);
        if (!first_line(path, vendor, sizeof vendor) || strcmp(vendor, "0x10de") != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s/class", root, e->d_name);
        found = first_line(path, class, sizeof class) && strncmp(class, "0x03", 4) == 0;
    }
    if (dir)
        closedir(dir);
    return found || access("/dev/nvidiactl", F_OK) == 0;
}

static bool
check_device(struct doctor *d, const char *name, enum state absent, const char *advice)
{
    struct et_device *dev;
    struct et_device_info info;
    char memory[32];
    if (et_device_open(d->c->cx, name, 0, 0, &dev) != ET_OK) {
        find_error(d, name, absent, advice);
        return false;
    }
    et_device_get_info(dev, &info);
    et_device_close(&dev);
    find(d, name, GOOD, NULL, "%s, %s, %s", info.name,
         cli_bytes((double)info.memory_bytes, memory, sizeof memory), info.library);
    return true;
}

static void
add_library(void *data, const char *name, const char *path)
{
    find(data, "cuda", GOOD, NULL, "%s is %s", name, path);
}

static void
check_devices(struct doctor *d)
{
    char driver[256];
    bool nvidia = has_nvidia();
    if (first_line("/proc/driver/nvidia/version", driver, sizeof driver))
        find(d, "driver", GOOD, NULL, "%s", driver);
    else if (nvidia)
        find(d, "driver", PROBLEM, "install NVIDIA's driver: nvidia-driver on Debian",
             "there is an NVIDIA GPU, but its driver is not loaded");
    bool gpu = check_device(d, "cuda", nvidia ? PROBLEM : NOTE,
                            nvidia ? "see Requirements in README.md" : NULL);
    eti_gpu_libs_each(add_library, d);
    check_device(d, "cpu", gpu ? NOTE : PROBLEM,
                 "build with oneDNN (libdnnl-dev); ETUDE_DEVICE=ref computes without");
}

/* ---- processors and memory ---- */

/* "MemAvailable" of /proc/meminfo in bytes; -1: it does not say. */
static double
memory_of(const char *key)
{
    FILE *f = fopen("/proc/meminfo", "re");
    char line[128];
    double bytes = -1;
    while (f && bytes < 0 && fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0 && line[strlen(key)] == ':')
            bytes = strtod(line + strlen(key) + 1, NULL) * 1024;
    if (f)
        fclose(f);
    return bytes;
}

/* The widest vectors that the processor has and the loops are made for. */
static const char *
simd(void)
{
#if defined __x86_64__
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
        return "AVX-512";
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? "AVX2"
                                                                           : "SSE2";
#else
    return "the compiler's baseline";
#endif
}

static void
check_processors(struct doctor *d)
{
    cpu_set_t set;
    long online = sysconf(_SC_NPROCESSORS_ONLN), ours = online;
    char quota[64];
    double limit = 0, period = 0;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        ours = CPU_COUNT(&set);
    find(d, "processors", GOOD, NULL, "%ld, of which this process may use %ld; %s",
         online, ours, simd());
    if (first_line("/sys/fs/cgroup/cpu.max", quota, sizeof quota) &&
        sscanf(quota, "%lf %lf", &limit, &period) == 2 && period > 0 &&
        limit / period < (double)ours)
        find(d, "processors", NOTE, "set OMP_NUM_THREADS to that, rounded up",
             "the control group allows the time of %.3g of them", limit / period);
    const char *threads = getenv("OMP_NUM_THREADS");
    if (threads && strtol(threads, NULL, 10) > 0 && strtol(threads, NULL, 10) < ours)
        find(d, "processors", NOTE, "unset OMP_NUM_THREADS to use them all",
             "OMP_NUM_THREADS is %s: training uses no more", threads);
}

static void
check_memory(struct doctor *d)
{
    double total = memory_of("MemTotal"), free = memory_of("MemAvailable");
    char all[32], left[32], text[64], *end;
    if (total < 0 || free < 0) {
        find(d, "memory", NOTE, NULL, "the system does not say how much there is");
        return;
    }
    bool little = free < LITTLE_MEMORY;
    find(d, "memory", little ? NOTE : GOOD,
         little ? "end other programs, or train with a smaller batch_size or "
                  "grad_accum: auto"
                : NULL,
         "%s, %s available", cli_bytes(total, all, sizeof all),
         cli_bytes(free, left, sizeof left));
    if (!first_line("/sys/fs/cgroup/memory.max", text, sizeof text))
        return;
    double limit = strtod(text, &end);
    if (end != text && limit < total)
        find(d, "memory", NOTE,
             "the limit is that of the container or the batch system",
             "the control group allows %s", cli_bytes(limit, all, sizeof all));
}

/* ---- disk ---- */

/* The longest beginning of PATH that is there. */
static void
nearest(char *path)
{
    struct stat st;
    while (stat(path, &st) != 0) {
        char *slash = strrchr(path, '/');
        if (!slash)
            snprintf(path, PATH_MAX, ".");
        else
            slash[slash == path] = '\0';
    }
}

static void
check_folder(struct doctor *d, const char *what, const char *wanted)
{
    struct statvfs fs;
    char path[PATH_MAX], bytes[32];
    snprintf(path, sizeof path, "%s", wanted);
    nearest(path);
    if (access(path, W_OK | X_OK) != 0) {
        find(d, "disk", PROBLEM,
             "write elsewhere (-C FOLDER, XDG_*_HOME), or change its owner",
             "%s, %s, cannot be written: %s", what, wanted, strerror(errno));
        return;
    }
    if (statvfs(path, &fs) != 0) {
        find(d, "disk", NOTE, NULL, "%s, %s: %s", what, wanted, strerror(errno));
        return;
    }
    double free = (double)fs.f_bavail * (double)fs.f_frsize;
    find(d, "disk",
         free < NO_DISK       ? PROBLEM
         : free < LITTLE_DISK ? NOTE
                              : GOOD,
         free < LITTLE_DISK ? "remove old runs, or write elsewhere" : NULL,
         "%s, %s: %s free", what, wanted, cli_bytes(free, bytes, sizeof bytes));
}

/* $XDG/etude, or $HOME/ELSE/etude; "" where neither is set. */
static void
check_home_folder(struct doctor *d, const char *what, const char *xdg,
                  const char *below)
{
    const char *base = getenv(xdg), *home = getenv("HOME");
    char path[PATH_MAX];
    if (base && *base == '/')
        snprintf(path, sizeof path, "%s/etude", base);
    else if (home && *home == '/')
        snprintf(path, sizeof path, "%s/%s/etude", home, below);
    else {
        char advice[128];
        snprintf(advice, sizeof advice, "set HOME or %s", xdg);
        find(d, "disk", NOTE, advice, "there is no place for %s", what);
        return;
    }
    check_folder(d, what, path);
}

static void
check_disk(struct doctor *d)
{
    const char *cache = getenv("ETUDE_CACHE_DIR");
    check_folder(d, "runs", "runs");
    check_home_folder(d, "the list of runs", "XDG_STATE_HOME", ".local/state");
    if (cache && *cache)
        check_folder(d, "the cache", cache);
    else
        check_home_folder(d, "the cache", "XDG_CACHE_HOME", ".cache");
}

/* ---- terminal ---- */

static void
check_terminal(struct doctor *d)
{
    static const char *const colors[TUI_DEPTHS] = {
        "no colours", "8 colours", "16 colours", "256 colours", "all colours"};
    static const char terminal_advice[] =
        "set TERM to what the terminal is, such as xterm-256color";
    struct tui_kind kind;
    struct winsize size = {0};
    const char *term = getenv("TERM");
    const struct eti_config *config = d->c->config; /* NULL: it is wrong */
    bool is_terminal = isatty(STDOUT_FILENO);
    tui_kind_find(&kind, STDOUT_FILENO, config ? config->set.color : ETI_COLOR_AUTO,
                  NULL);
    if (!*kind.name || (term && strcmp(term, "dumb") == 0))
        find(d, "terminal", NOTE, terminal_advice,
             "TERM is '%s', which no screen can be drawn on", term ? term : "");
    else
        find(d, "terminal", GOOD, NULL, "%s: %s", kind.name, colors[kind.depth]);
    if (*kind.notice)
        find(d, "terminal", NOTE, terminal_advice, "%s", kind.notice);
    if (!tui_is_utf8())
        find(d, "terminal", NOTE, "set LC_ALL=C.UTF-8, if the terminal shows Unicode",
             "the locale has no UTF-8: lines and charts are drawn in ASCII");
    else
        find(d, "terminal", GOOD, NULL, "UTF-8: charts are drawn %s",
             tui_plot_choose(false, config ? config->set.ui.plot : ETI_PLOT_AUTO) ==
                     ETI_PLOT_BRAILLE
                 ? "in braille"
                 : "in blocks");
    if (is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
        size.ws_col > 0) {
        bool small = size.ws_col < 60 || size.ws_row < 16;
        find(d, "terminal", small ? NOTE : GOOD,
             small ? "make it 60x16 or larger" : NULL, "%dx%d", size.ws_col,
             size.ws_row);
    }
}

/* ---- sockets, keys, clocks ---- */

/* For etd_endpoint_bind: the socket is there, which is all that is asked. */
static int
keep(void *data, const char *address, int fd)
{
    (void)data, (void)address, (void)fd;
    return 0;
}

static void
leave(void *data, const char *address, int fd)
{
    (void)data, (void)address;
    close(fd);
}

static void
check_sockets(struct doctor *d)
{
    struct etd_endpoint e = {.lock = -1, .fd = -1};
    char folder[PATH_MAX], name[32];
    struct et_ctx *cx = d->c->cx;
    const struct etd_listener nobody = {keep, leave};
    etd_endpoint_folder(folder, sizeof folder);
    snprintf(name, sizeof name, "doctor-%ld", (long)getpid());
    et_status status = etd_endpoint_claim(cx, name, NULL, &e);
    if (status == ET_OK)
        status = etd_endpoint_bind(&e, &nobody, NULL);
    if (status == ET_OK)
        close(e.fd);
    etd_endpoint_release(&e);
    if (status != ET_OK)
        find_error(d, "sockets", PROBLEM,
                   "set XDG_RUNTIME_DIR to a folder of yours, on a local disk");
    else
        find(d, "sockets", GOOD, NULL, "runs listen in %s", folder);
}

static void
check_keys(struct doctor *d)
{
    char folder[PATH_MAX - 64], path[PATH_MAX], print[ETD_FINGERPRINT];
    struct etd_keys keys;
    static struct etd_authorized_list list; /* 40 KB: not on the stack */
    cli_user_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/curve.key", folder);
    et_status status = etd_keys_read(d->c->cx, path, &keys);
    if (status == ET_OK)
        find(d, "keys", GOOD, NULL, "%s: %s", path,
             etd_key_fingerprint(keys.public_key, print));
    else if (status == ET_ENOENT) {
        et_error_clear(d->c->cx);
        find(d, "keys", GOOD, NULL,
             "none; 'etude worker keygen' makes one, which workers on other machines "
             "need");
    } else
        find_error(d, "keys", PROBLEM,
                   "chmod 600 it, or make another: etude worker keygen");
    memset(keys.secret, 0, sizeof keys.secret);
    snprintf(path, sizeof path, "%s/authorized_keys", folder);
    status = etd_authorized_read(d->c->cx, path, &list);
    if (status == ET_OK)
        find(d, "keys", GOOD, NULL, "%s lets %d in", path, list.n);
    else if (status == ET_ENOENT)
        et_error_clear(d->c->cx);
    else
        find_error(d, "keys", PROBLEM,
                   "chmod 600 it, or mend the line; until then nobody is let in");
}

static void
check_clocks(struct doctor *d)
{
    struct timex t = {0};
    char text[64];
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &utc);
    int state = adjtimex(&t);
    if (now < BORN)
        find(d, "clock", PROBLEM, "set it: timedatectl set-ntp true",
             "%s is before this program was written", text);
    else if (state < 0 || state == TIME_ERROR || t.status & STA_UNSYNC)
        find(d, "clock", NOTE,
             "timedatectl set-ntp true, where runs of several machines are compared",
             "%s, which nothing keeps in step", text);
    else
        find(d, "clock", GOOD, NULL, "%s, kept in step with others", text);
}

/* ---- configuration ---- */

/* First, since what it says of the terminal counts below. */
static void
check_config(struct doctor *d)
{
    char file[ETI_LAYERS][PATH_MAX];
    const char *path[ETI_LAYERS];
    struct et_diagnostics errors = {0};
    int n = 0;
    cli_config_paths(d->c, file);
    for (int i = 0; i < ETI_LAYERS; i++)
        path[i] = file[i];
    et_status status = eti_config_load(d->c->cx, path, &d->c->config, &errors);
    for (int i = 0; i < errors.n; i++)
        find(d, "config", PROBLEM, "mend that line: etude config edit", "%s:%d: %s",
             errors.v[i].file, errors.v[i].line, errors.v[i].message);
    if (status != ET_OK) {
        if (errors.n == 0)
            find_error(d, "config", PROBLEM, NULL);
        et_error_clear(d->c->cx);
        return;
    }
    for (int i = 0; i < ETI_LAYERS; i++)
        if (access(file[i], F_OK) == 0 && ++n)
            find(d, "config", GOOD, NULL, "%s is read", file[i]);
    if (n == 0)
        find(d, "config", GOOD, NULL, "none: every setting has its default");
}

/* ---- the report ---- */

static void
print_findings(const json_t *findings)
{
    size_t i;
    json_t *one;
    const char *before = "";
    json_array_foreach(findings, i, one)
    {
        const char *part = json_string_value(json_object_get(one, "part"));
        const char *advice = json_string_value(json_object_get(one, "advice"));
        et_print(stdout, "%-11s %-8s %s\n", strcmp(part, before) == 0 ? "" : part,
                 json_string_value(json_object_get(one, "state")),
                 json_string_value(json_object_get(one, "text")));
        if (*advice)
            et_print(stdout, "%-11s %-8s -> %s\n", "", "", advice);
        before = part;
    }
}

int
cli_doctor(struct cli *c)
{
    struct doctor d = {.c = c};
    if (c->n_args > 0)
        return cli_fail(c, CLI_E_OPERAND, NULL, "doctor takes no operand, not '%s'",
                        c->arg[0]);
    d.findings = json_array();
    if (!d.findings)
        return CLI_NO_MEMORY;
    find(&d, "etude", GOOD, NULL, "%s, device ABI %d", PACKAGE_VERSION, ET_DEVICE_ABI);
    check_config(&d);
    check_devices(&d);
    check_processors(&d);
    check_memory(&d);
    check_disk(&d);
    check_terminal(&d);
    check_sockets(&d);
    check_keys(&d);
    check_clocks(&d);
    int code = d.problems ? CLI_FAILED : CLI_OK;
    if (c->opt.json) {
        int printed = cli_print_json(
            json_pack("{s:i, s:o}", "problems", d.problems, "findings", d.findings));
        return printed == CLI_OK ? code : printed;
    }
    print_findings(d.findings);
    json_decref(d.findings);
    if (d.problems)
        et_print(stdout, "\n%d %s\n", d.problems,
                 d.problems == 1 ? "problem" : "problems");
    else
        printf("\nNo problems: this machine can train.\n");
    return code;
}
