/* SPDX-License-Identifier: Apache-2.0 */
/* R05: a machine that stops at any instant of a save. Each file operation of a save is
 * recorded; then what a disk may hold after a stop is built and loaded: every prefix of
 * the operations, writes cut short, and whatever was not yet synced lost, zeroed, or
 * there without what came before it. A name is on the disk for certain when its folder
 * has been synced, a file's bytes when the file has.
 *
 * The checkpoint that is found must be the new one or the one before it, whole. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "etude/rng.h"
#include "t/fault/fixture.h"
#include "t/tap.h"

enum {
    MAX_OPS = 1024,
    MAX_NODES = 256,
    MAX_NAMES = 256,
    MAX_FDS = 256,
    MAX_STATES = 1 << 18,
    ROOT = 0, /* the folder that checkpoints/ is in */
};

/* ---- a file system in memory ---- */

/* A file or folder; NAMED says where it is, if anywhere. */
struct node {
    bool is_folder;
    char *bytes;
    size_t n;
};
struct name {
    int folder, node; /* node -1: free */
    char text[64];
};
struct disk {
    struct node node[MAX_NODES];
    int n_nodes;
    struct name name[MAX_NAMES];
    int n_names;
};

static void
disk_clear(struct disk *d)
{
    for (int i = 0; i < d->n_nodes; i++)
        free(d->node[i].bytes);
    d->n_nodes = d->n_names = 0;
}

static void
disk_copy(struct disk *to, const struct disk *from)
{
    disk_clear(to);
    *to = *from;
    for (int i = 0; i < to->n_nodes; i++) {
        to->node[i].bytes = malloc(from->node[i].n + 1);
        memcpy(to->node[i].bytes, from->node[i].bytes ? from->node[i].bytes : "",
               from->node[i].n);
    }
}

static int
add_node(struct disk *d, bool is_folder)
{
    if (d->n_nodes == MAX_NODES)
        bail("more than %d files", MAX_NODES);
    d->node[d->n_nodes] = (struct node){.is_folder = is_folder};
    return d->n_nodes++;
}

static struct name *
find_name(struct disk *d, int folder, const char *text)
{
    for (int i = 0; i < d->n_names; i++)
        if (d->name[i].node >= 0 && d->name[i].folder == folder &&
            strcmp(d->name[i].text, text) == 0)
            return &d->name[i];
    return NULL;
}

static void
set_name(struct disk *d, int folder, const char *text, int node)
{
    struct name *name = find_name(d, folder, text);
    if (!name && d->n_names == MAX_NAMES)
        bail("more than %d names", MAX_NAMES);
    if (!name)
        name = &d->name[d->n_names++];
    name->folder = folder;
    name->node = node;
    snprintf(name->text, sizeof name->text, "%s", text);
}

static void
put_bytes(struct node *node, size_t at, const char *bytes, size_t n)
{
    if (at + n > node->n) {
        node->bytes = realloc(node->bytes, at + n + 1);
        memset(node->bytes + node->n, 0, at + n - node->n);
        node->n = at + n;
    }
    if (n && bytes)
        memcpy(node->bytes + at, bytes, n);
    else if (n)
        memset(node->bytes + at, 0, n);
}

/* What lies in the real folder PATH, as node FOLDER. */
static void
disk_scan(struct disk *d, int folder, const char *path)
{
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char whole[1024];
        struct stat st;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        snprintf(whole, sizeof whole, "%s/%s", path, e->d_name);
        if (stat(whole, &st) != 0)
            bail("cannot read %s", whole);
        int node = add_node(d, S_ISDIR(st.st_mode));
        set_name(d, folder, e->d_name, node);
        if (d->node[node].is_folder)
            disk_scan(d, node, whole);
        else
            d->node[node].bytes = read_whole(whole, &d->node[node].n);
    }
    if (dir)
        closedir(dir);
}

static void
disk_build(const struct disk *d, int folder, const char *path)
{
    char whole[1024];
    for (int i = 0; i < d->n_names; i++) {
        const struct name *name = &d->name[i];
        if (name->node < 0 || name->folder != folder)
            continue;
        const struct node *node = &d->node[name->node];
        snprintf(whole, sizeof whole, "%s/%s", path, name->text);
        if (node->is_folder) {
            make_folder(whole);
            disk_build(d, name->node, whole);
        } else {
            write_whole(whole, node->bytes ? node->bytes : "", node->n);
        }
    }
}

/* A number for all that can be seen of it. */
static uint64_t
disk_hash(const struct disk *d, int folder)
{
    uint64_t sum = 1;
    for (int i = 0; i < d->n_names; i++) {
        const struct name *name = &d->name[i];
        if (name->node < 0 || name->folder != folder)
            continue;
        const struct node *node = &d->node[name->node];
        uint64_t one = XXH3_64bits(name->text, strlen(name->text));
        one ^= node->is_folder ? 3 * disk_hash(d, name->node)
                               : XXH3_64bits(node->bytes ? node->bytes : "", node->n);
        sum += one * 0x9e3779b97f4a7c15; /* in any order */
    }
    return sum;
}

/* ---- recording ---- */

enum op_kind { OP_MAKE, OP_WRITE, OP_SYNC, OP_RENAME, OP_REMOVE };
struct op {
    enum op_kind kind;
    int folder, node; /* of the name; what is made, written or synced */
    char text[64], to[64];
    char *bytes;
    size_t at, n;
};
static struct {
    bool on;
    struct disk disk; /* as the program sees it */
    int fd_node[MAX_FDS];
    size_t fd_at[MAX_FDS];
    struct op op[MAX_OPS];
    int n;
    int fail_write; /* the write that fails, counted down; 0: none */
} tape;

static struct op *
record(enum op_kind kind, int folder, const char *text, int node)
{
    if (tape.n == MAX_OPS)
        bail("more than %d operations", MAX_OPS);
    struct op *op = &tape.op[tape.n++];
    *op = (struct op){.kind = kind, .folder = folder, .node = node};
    snprintf(op->text, sizeof op->text, "%s", text);
    return op;
}

/* The node of DIR/PATH's folder; *LAST is the name in it. */
static int
folder_of(int dir, const char *path, const char **last)
{
    const char *slash = strrchr(path, '/');
    *last = slash ? slash + 1 : path;
    return dir == AT_FDCWD ? ROOT : tape.fd_node[dir];
}

static int
tape_open(int dir, const char *path, int flags, mode_t mode)
{
    const char *last;
    int fd = eti_system.file.open(dir, path, flags, mode);
    if (fd < 0 || fd >= MAX_FDS || !tape.on)
        return fd;
    int folder = folder_of(dir, path, &last);
    struct name *name = find_name(&tape.disk, folder, last);
    int node = name                     ? name->node
               : strcmp(last, ".") == 0 ? folder
               : dir == AT_FDCWD        ? ROOT /* the parent of checkpoints/ */
                                        : -1;
    if (flags & O_CREAT) {
        node = add_node(&tape.disk, false);
        set_name(&tape.disk, folder, last, node);
        record(OP_MAKE, folder, last, node);
    }
    tape.fd_node[fd] = node;
    tape.fd_at[fd] = 0;
    return fd;
}

static ssize_t
tape_write(int fd, const void *buf, size_t n)
{
    if (tape.on && tape.fail_write && --tape.fail_write == 0) {
        errno = ENOSPC;
        return -1;
    }
    ssize_t put = eti_system.file.write(fd, buf, n);
    if (put > 0 && tape.on) {
        struct op *op = record(OP_WRITE, 0, "", tape.fd_node[fd]);
        op->bytes = malloc((size_t)put);
        memcpy(op->bytes, buf, (size_t)put);
        op->at = tape.fd_at[fd];
        op->n = (size_t)put;
        tape.fd_at[fd] += op->n;
    }
    return put;
}

static int
tape_sync(int fd)
{
    if (tape.on)
        record(OP_SYNC, 0, "", tape.fd_node[fd]);
    return 0; /* nobody waits for a real disk */
}

static int
tape_rename(int from_dir, const char *from, int to_dir, const char *to)
{
    int failed = eti_system.file.rename(from_dir, from, to_dir, to);
    if (!failed && tape.on) {
        int folder = tape.fd_node[from_dir];
        struct name *name = find_name(&tape.disk, folder, from);
        struct op *op = record(OP_RENAME, folder, from, name->node);
        snprintf(op->to, sizeof op->to, "%s", to);
        int node = name->node;
        name->node = -1;
        set_name(&tape.disk, folder, to, node);
    }
    return failed;
}

static int
tape_unlink(int dir, const char *path, int flags)
{
    int failed = eti_system.file.unlink(dir, path, flags);
    if (!failed && tape.on) {
        struct name *name = find_name(&tape.disk, tape.fd_node[dir], path);
        record(OP_REMOVE, tape.fd_node[dir], path, name->node);
        name->node = -1;
    }
    return failed;
}

static int
tape_make_folder(int dir, const char *path, mode_t mode)
{
    const char *last;
    int failed = eti_system.file.make_folder(dir, path, mode);
    if (!failed && tape.on) {
        int folder = folder_of(dir, path, &last), node = add_node(&tape.disk, true);
        set_name(&tape.disk, folder, last, node);
        record(OP_MAKE, folder, last, node);
    }
    return failed;
}

/* Begins to record, in ROOT_PATH. What is there is taken to be on the disk. */
static void
tape_start(const char *root_path, struct disk *before)
{
    for (int i = 0; i < tape.n; i++)
        free(tape.op[i].bytes);
    tape.n = 0;
    disk_clear(&tape.disk);
    add_node(&tape.disk, true);
    disk_scan(&tape.disk, ROOT, root_path);
    disk_copy(before, &tape.disk);
    tape.on = true;
}

/* ---- stopping ---- */

/* What becomes of an operation. */
enum fate { LOST, DONE, ZEROED, CUT };

static bool
is_synced(int i, int end)
{
    const struct op *op = &tape.op[i];
    int what = op->kind == OP_WRITE ? op->node : op->folder;
    for (int k = i + 1; k < end; k++)
        if (tape.op[k].kind == OP_SYNC && tape.op[k].node == what)
            return true;
    return false;
}

static void
apply(struct disk *d, const struct op *op, enum fate fate, size_t cut)
{
    struct name *name;
    size_t n = fate == CUT ? cut : op->n;
    while (d->n_nodes <= op->node)
        add_node(d, false);
    switch (op->kind) {
    case OP_MAKE:
        set_name(d, op->folder, op->text, op->node);
        break;
    case OP_WRITE:
        put_bytes(&d->node[op->node], op->at, fate == ZEROED ? NULL : op->bytes, n);
        break;
    case OP_RENAME:
        name = find_name(d, op->folder, op->text);
        if (!name) /* it was never made, as far as the disk knows */
            break;
        name->node = -1;
        set_name(d, op->folder, op->to, op->node);
        break;
    case OP_REMOVE:
        name = find_name(d, op->folder, op->text);
        if (name)
            name->node = -1;
        break;
    case OP_SYNC:
        break;
    }
}

/* ---- what is found after it ---- */

enum { NONE = -1 };
struct found {
    int64_t step; /* NONE: there is no checkpoint */
    uint64_t digest;
};

static struct {
    struct et_ctx *cx;
    char live[600], after[600], dir[640];
    struct disk before;          /* the save */
    struct found previous, next; /* what may be found */
    bool committed_from_on;      /* the save succeeded: at its end, only the next */
    uint64_t *seen;              /* states that have been tried */
    int n_seen, wrong, none, older;
} t;

static struct found
load_from(const char *root)
{
    struct found found = {.step = NONE};
    const struct et_load_config from = {.directory = path_to(root, "checkpoints")};
    const struct saving_setup setup = {.load = &from};
    struct saving_run s;
    et_status status;
    if (saving_open(&s, t.cx, &setup, &status)) {
        found.step = s.r.state->timestamp.batch;
        found.digest = saving_digest(&s);
        saving_close(&s);
    } else if (status != ET_EFORMAT && status != ET_ENOENT) {
        bail("%s", et_error_get(t.cx)->message);
    }
    et_error_clear(t.cx);
    return found;
}

static bool
is_new_state(const struct disk *d, bool ended)
{
    uint64_t hash = disk_hash(d, ROOT) + ended; /* other things may be found then */
    for (int i = 0; i < t.n_seen; i++)
        if (t.seen[i] == hash)
            return false;
    if (t.n_seen < MAX_STATES)
        t.seen[t.n_seen++] = hash;
    return true;
}

static bool
is_same(struct found a, struct found b)
{
    return a.step == b.step && (a.step == NONE || a.digest == b.digest);
}

/* A stop after END operations with these fates. */
static void
try_state(int end, const enum fate *fate, size_t cut, const char *how)
{
    static struct disk d;
    disk_copy(&d, &t.before);
    for (int i = 0; i < end; i++)
        if (fate[i] != LOST)
            apply(&d, &tape.op[i], fate[i], cut);
    for (int i = 0; i < end; i++) /* nodes that are folders, where apply made them */
        if (tape.op[i].kind == OP_MAKE && tape.op[i].node < d.n_nodes)
            d.node[tape.op[i].node].is_folder =
                tape.disk.node[tape.op[i].node].is_folder;
    bool ended = end == tape.n && t.committed_from_on;
    if (!is_new_state(&d, ended))
        return;
    remove_tree(t.after);
    make_folder(t.after);
    disk_build(&d, ROOT, t.after);
    struct found found = load_from(t.after);
    t.none += found.step == NONE;
    t.older += is_same(found, t.previous);
    if (is_same(found, t.next) || (!ended && is_same(found, t.previous)))
        return;
    if (t.wrong++ == 0)
        diag("after %d of %d operations, %s: step %lld is found", end, tape.n, how,
             (long long)found.step);
}

static enum fate fate[MAX_OPS];

/* Every operation up to END that is not synced has these fates. */
static void
set_fates(int end, enum fate names, enum fate writes)
{
    for (int i = 0; i < end; i++)
        fate[i] = is_synced(i, end)             ? DONE
                  : tape.op[i].kind == OP_WRITE ? writes
                                                : names;
}

static void
try_prefix(int end, struct et_rng *rng, int draws)
{
    static int open_op[MAX_OPS]; /* not synced */
    int n = 0;
    for (int i = 0; i < end; i++)
        if (tape.op[i].kind != OP_SYNC && !is_synced(i, end))
            open_op[n++] = i;
    set_fates(end, DONE, DONE);
    try_state(end, fate, 0, "with all");
    set_fates(end, LOST, LOST);
    try_state(end, fate, 0, "without what was not synced");
    set_fates(end, DONE, LOST);
    try_state(end, fate, 0, "with names alone");
    set_fates(end, DONE, ZEROED);
    try_state(end, fate, 0, "with zeros");
    set_fates(end, LOST, DONE);
    try_state(end, fate, 0, "with bytes alone");
    if (end && tape.op[end - 1].kind == OP_WRITE) {
        size_t size = tape.op[end - 1].n, cuts[] = {0, 1, size / 2, size - 1};
        for (int i = 0; i < 4; i++) {
            set_fates(end, DONE, DONE);
            fate[end - 1] = CUT;
            try_state(end, fate, cuts[i], "with a write cut short");
        }
    }
    for (int k = 0; k < n; k++) {
        set_fates(end, DONE, DONE);
        fate[open_op[k]] = LOST;
        try_state(end, fate, 0, "without one");
        set_fates(end, LOST, LOST);
        fate[open_op[k]] = DONE;
        try_state(end, fate, 0, "with one alone");
        if (tape.op[open_op[k]].kind != OP_WRITE)
            continue;
        set_fates(end, DONE, DONE);
        fate[open_op[k]] = ZEROED;
        try_state(end, fate, 0, "with one zeroed");
    }
    for (int k = 0; n && k < draws; k++) {
        set_fates(end, DONE, DONE);
        for (int i = 0; i < n; i++)
            if (et_rng_below(rng, 2))
                fate[open_op[i]] = (enum fate)et_rng_below(rng, 3);
        try_state(end, fate, 0, "with some");
    }
}

/* Replays what is on the tape. */
static void
try_all_stops(const char *what)
{
    struct et_rng rng = et_rng_at(5, ET_RNG_SELECT, 0);
    t.n_seen = t.wrong = t.none = t.older = 0;
    for (int end = 0; end <= tape.n; end++)
        try_prefix(end, &rng, is_long() ? 1500 : 6);
    ok(t.wrong == 0, "%s: after %d different stops the new or the previous is found",
       what, t.n_seen);
    ok(t.older > 0 && t.n_seen > 50, "(the previous %d times)", t.older);
    if (t.previous.step != NONE)
        is_int(t.none, 0, "and never none");
    remove_tree(t.after);
}

/* ---- saves ---- */

static struct eti_seams seams;

/* A run that has saved after each batch of BEFORE, all kept, saves once more after
 * BATCH with KEEP while the tape records. */
static void
record_save(const int *before, int batch, int64_t keep, int fail_write)
{
    struct et_checkpoint_config to = saves_to(t.dir, -1);
    struct et_load_config from = {.directory = t.dir};
    struct saving_setup setup = {.checkpoint = &to};
    struct saving_run s;
    et_status status;
    int at = 0;
    if (count_names(t.dir, "step-"))
        setup.load = &from;
    t.previous = (struct found){.step = NONE};
    if (!saving_open(&s, t.cx, &setup, &status))
        bail("%s", et_error_get(t.cx)->message);
    at = (int)s.r.state->timestamp.batch;
    for (; *before; at = *before++)
        saving_train(&s, *before - at);
    if (at)
        t.previous = (struct found){at, saving_digest(&s)};
    saving_close(&s);
    to.keep = keep;
    setup.load = at ? &from : NULL;
    if (!saving_open(&s, t.cx, &setup, &status))
        bail("%s", et_error_get(t.cx)->message);
    tape_start(t.live, &t.before);
    tape.fail_write = fail_write;
    saving_train(&s, batch - at);
    tape.on = false;
    t.next = (struct found){batch, saving_digest(&s)};
    t.committed_from_on = fail_write == 0;
    if (fail_write)
        t.next = t.previous;
    saving_close(&s);
}

static void
clear(void)
{
    remove_tree(t.live);
    make_folder(t.live);
}

int
main(void)
{
    t.cx = need_ctx();
    t.seen = calloc(MAX_STATES, sizeof *t.seen);
    snprintf(t.live, sizeof t.live, "%s", path_to(scratch_folder(), "live"));
    snprintf(t.after, sizeof t.after, "%s", path_to(scratch_folder(), "after"));
    snprintf(t.dir, sizeof t.dir, "%s/checkpoints", t.live);
    seams = eti_system;
    seams.file.open = tape_open;
    seams.file.write = tape_write;
    seams.file.sync = tape_sync;
    seams.file.rename = tape_rename;
    seams.file.unlink = tape_unlink;
    seams.file.make_folder = tape_make_folder;
    eti_ctx_set_seams(t.cx, &seams);

    clear();
    record_save((int[]){0}, 2, 1, 0);
    try_all_stops("the first save");
    clear();
    record_save((int[]){2, 0}, 3, 1, 0);
    try_all_stops("a save that removes the one before");
    clear();
    record_save((int[]){1, 2, 4, 0}, 5, 2, 0);
    try_all_stops("a save that removes the third and the fourth");
    clear();
    record_save((int[]){2, 0}, 3, 1, 9);
    try_all_stops("a save that fails and cleans up");
    clear();
    /* Back to 2 after 3 was damaged, which nobody set aside. */
    record_save((int[]){2, 3, 0}, 4, -1, 0);
    write_whole(path_to(path_to(t.dir, "step-000000000004"), "MANIFEST"), "{}", 2);
    record_save((int[]){0}, 4, 2, 0);
    try_all_stops("a save in the place of a damaged one");
    remove_tree(t.live);
    for (int i = 0; i < tape.n; i++)
        free(tape.op[i].bytes);
    disk_clear(&tape.disk);
    disk_clear(&t.before);
    free(t.seen);
    et_ctx_free(&t.cx);
    return done();
}
