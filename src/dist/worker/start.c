/* SPDX-License-Identifier: Apache-2.0 */
/* start.c: see start.h. */
#include "config.h"

#include "dist/worker/start.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "dist/wire/endpoint.h"
#include "dist/wire/errors.h"
#include "etude/run.h"

enum {
    ARGS = 32,        /* words of a recipe */
    WORDS = 16 << 10, /* bytes of them */
    HEX = 2 * ETD_CMD_ID + 1,
    DAY = 24 * 3600,
    FILES = 64, /* that a recipe includes */
    DEPTH = 24, /* of folders in each other */
};
static const char prefix[] = "start-";
static const char files[] = "files";    /* of the recipe, in a folder of that name */
static const double LOST_SECONDS = 120; /* without an answer, and nobody is at it */

/* Options of `train` that may be sent: none takes a path. */
static const char *const allowed[] = {
    "--alg=",     "--no-alg=",   "--unset=", "--target=",
    "--timeout=", "--run_name=", "--nproc="};

/* ---- the folder of a command ---- */

static void
path_of(const struct etd_starts *s, const unsigned char *id, const char *file,
        char *out)
{
    char hex[HEX];
    for (int i = 0; i < ETD_CMD_ID; i++)
        snprintf(hex + 2 * i, 3, "%02x", id[i]);
    snprintf(out, PATH_MAX, "%.3000s/%s%s%s%.255s", s->folder, prefix, hex,
             *file ? "/" : "", file);
}

static void
remove_beneath(const char *path, int depth)
{
    char inside[PATH_MAX];
    DIR *d = depth < DEPTH ? opendir(path) : NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (snprintf(inside, sizeof inside, "%s/%s", path, e->d_name) <
                (int)sizeof inside &&
            unlink(inside) != 0)
            remove_beneath(inside, depth + 1);
    }
    if (d)
        closedir(d);
    (void)rmdir(path);
}

static void
remove_folder(const char *path)
{
    remove_beneath(path, 0);
}

/* Removes the folders that nobody asks for any more. */
static void
remove_old(const struct etd_starts *s)
{
    char path[PATH_MAX];
    struct stat st;
    DIR *d = opendir(s->folder);
    for (struct dirent *e; d && (e = readdir(d));)
        if (strncmp(e->d_name, prefix, strlen(prefix)) == 0 &&
            snprintf(path, sizeof path, "%s/%s", s->folder, e->d_name) <
                (int)sizeof path &&
            lstat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
            eti_wall(s->cx) - (double)st.st_mtim.tv_sec > DAY)
            remove_folder(path);
    if (d)
        closedir(d);
}

/* ---- what is sent ---- */

static bool
is_allowed(const char *word, size_t n)
{
    for (size_t i = 0; word[0] == '-' && i < sizeof allowed / sizeof *allowed; i++)
        if (n >= strlen(allowed[i]) &&
            memcmp(word, allowed[i], strlen(allowed[i])) == 0)
            return true;
    return word[0] != '-' && memchr(word, '=', n);
}

/* The words of a list, in ROOM; NULL: one of them is something else. */
static const char *
take_args(const struct etd_map *body, char *room, size_t size, const char **argv, int n)
{
    struct etd_value list, word;
    if (!etd_find(body, "args", &list))
        return NULL;
    const unsigned char *at = list.at;
    if (list.type != ETD_IS_LIST || list.n > ARGS)
        return "args is a list of at most 32 texts";
    for (size_t i = 0; i < list.n; i++) {
        etd_next(&at, body->end, &word);
        if (word.type != ETD_IS_TEXT || word.n + 1 > size || word.n == 0 ||
            memchr(word.bytes, '\0', word.n) || !is_allowed(word.bytes, word.n))
            return "args are texts such as train_data.batch_size=64";
        memcpy(room, word.bytes, word.n);
        room[word.n] = '\0';
        argv[n++] = room;
        room += word.n + 1;
        size -= word.n + 1;
    }
    argv[n] = NULL;
    return NULL;
}

/* What people call the recipe: a file's name, and nothing else. */
static const char *
take_name(struct et_ctx *cx, const struct etd_map *body, char name[ET_RUN_NAME])
{
    etd_get_text(body, "name", name, ET_RUN_NAME);
    if (!*name)
        snprintf(name, ET_RUN_NAME, "recipe");
    bool right = et_run_name_check(cx, name) == ET_OK;
    et_error_clear(cx);
    return right ? NULL : "name has letters, digits and . _ - alone";
}

static bool
write_file(const struct etd_starts *s, const char *path, const void *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool written = eti_write_all(s->cx, fd, path, bytes, n) == ET_OK;
    et_error_clear(s->cx);
    return close(fd) == 0 && written;
}

/* Does PATH stay beneath the folder that it begins in, not too deep? */
static bool
is_beneath(const char *path)
{
    int depth = 1;
    bool right = path[0] && path[0] != '/';
    for (const char *part = path; right; part += strcspn(part, "/") + 1) {
        size_t n = strcspn(part, "/");
        right =
            n <= NAME_MAX && !(n == 2 && memcmp(part, "..", 2) == 0) && depth++ < DEPTH;
        if (!part[n])
            return right && n > 0;
    }
    return false;
}

/* Makes the folders that the file at PATH lies in, beneath the first BELOW bytes. */
static void
make_folders(char *path, size_t below)
{
    for (char *at = strchr(path + below, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        (void)mkdir(path, 0700); /* else the file says what is wrong */
        *at = '/';
    }
}

/* The files that the recipe includes, beside it in FOLDER: the names "paths", the
 * "sizes", and the bytes of all, one after the other. NULL, or what is wrong. */
static const char *
write_files(const struct etd_starts *s, const struct etd_frame *f, const char *folder)
{
    struct etd_value paths, bytes, name;
    int64_t size[FILES];
    size_t at = 0;
    char path[PATH_MAX];
    if (!etd_find(&f->body, "paths", &paths))
        return NULL;
    int n = etd_get_ints(&f->body, "sizes", size, FILES);
    const unsigned char *next = paths.at;
    if (paths.type != ETD_IS_LIST || paths.n != (size_t)n ||
        !etd_find(&f->body, "files", &bytes) || bytes.type != ETD_IS_BIN)
        return "paths, sizes and files do not fit each other";
    for (int i = 0; i < n; i++) {
        etd_next(&next, f->body.end, &name);
        if (name.type != ETD_IS_TEXT || memchr(name.bytes, '\0', name.n) ||
            snprintf(path, sizeof path, "%s/%.*s", folder, (int)name.n, name.bytes) >=
                (int)sizeof path ||
            !is_beneath(path + strlen(folder) + 1))
            return "a file's path leaves the recipe's folder";
        if (size[i] < 0 || (uint64_t)size[i] > bytes.n - at)
            return "paths, sizes and files do not fit each other";
        make_folders(path, strlen(folder) + 1);
        if (!write_file(s, path, bytes.bytes + at, (size_t)size[i]))
            return strerror(errno);
        at += (size_t)size[i];
    }
    return NULL;
}

/* ---- answers ---- */

/* {"kind": "APPLIED", "code": 0, "text": ...}, whole or not at all. */
static void
write_answer(const struct etd_starts *s, const struct etd_answer *a)
{
    char path[PATH_MAX], new[PATH_MAX];
    json_t *json = json_pack("{s:s, s:i, s:s}", "kind", etd_kind_name(a->kind), "code",
                             a->code, "text", a->text);
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    path_of(s, a->id, "answer", path);
    path_of(s, a->id, "answer.new", new);
    if (text && write_file(s, new, text, strlen(text)))
        (void)rename(new, path);
    free(text);
    json_decref(json);
}

static bool
read_answer(const struct etd_starts *s, const unsigned char *id, struct etd_answer *a)
{
    char path[PATH_MAX];
    path_of(s, id, "answer", path);
    json_t *json = json_load_file(path, 0, NULL);
    const char *kind = json_string_value(json_object_get(json, "kind"));
    const char *text = json_string_value(json_object_get(json, "text"));
    *a = (struct etd_answer){
        .kind = kind && strcmp(kind, "APPLIED") == 0 ? ETD_APPLIED : ETD_REJECTED,
        .code = (int)json_integer_value(json_object_get(json, "code")),
    };
    memcpy(a->id, id, sizeof a->id);
    snprintf(a->text, sizeof a->text, "%s", text ? text : "");
    json_decref(json);
    return kind != NULL;
}

/* The line of SAID that is the answer: that it goes on, or "etude: error E2003: ...";
 * warnings come before it. */
static char *
find_answer(char *said)
{
    static const char warning[] = "etude: warn: ";
    char *line = said, *next;
    while (strncmp(line, warning, strlen(warning)) == 0 &&
           (next = strchr(line, '\n')) && next[1])
        line = next + 1;
    line[strcspn(line, "\n")] = '\0';
    return line;
}

static void
conclude(const struct etd_starts *s, struct etd_start *t, int status)
{
    static const char head[] = "etude: error E";
    char folder[PATH_MAX], *said = find_answer(t->child.said), *place;
    struct etd_answer a = {.kind = ETD_REJECTED, .code = ETD_E_ARGUMENT};
    bool fine = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    memcpy(a.id, t->id, sizeof a.id);
    /* Where the recipe lies meanwhile is nobody's business. */
    path_of(s, t->id, files, folder);
    size_t n = strlen(folder) + 1;
    while ((place = strstr(said, folder)))
        memmove(place, strlen(place) >= n ? place + n : place + strlen(place),
                strlen(strlen(place) >= n ? place + n : place + strlen(place)) + 1);
    if (fine) {
        a.kind = ETD_APPLIED;
        a.code = 0;
    } else if (strncmp(said, head, strlen(head)) == 0) {
        a.code = (int)strtol(said + strlen(head), &said, 10);
        said += strspn(said, ": ");
    }
    snprintf(a.text, sizeof a.text, "%.*s", (int)sizeof a.text - 1,
             *said ? said : "etude train said nothing");
    write_answer(s, &a);
    t->used = false;
}

/* ---- starting ---- */

static struct etd_start *
find(struct etd_starts *s, const unsigned char *id)
{
    for (int i = 0; i < ETD_STARTING; i++)
        if (id ? s->start[i].used && memcmp(s->start[i].id, id, ETD_CMD_ID) == 0
               : !s->start[i].used)
            return &s->start[i];
    return NULL;
}

/* In the folder that was made for it. NULL, or why not. */
static const char *
begin(struct etd_starts *s, struct etd_start *t, const struct etd_frame *f,
      const struct etd_value *recipe, const char *name)
{
    char room[WORDS], path[PATH_MAX], file[ET_RUN_NAME + 16], folder[PATH_MAX];
    const char *argv[ARGS + 8] = {
        "etude", "train", "-d", "--progress=none", "launch.worker=null", path, NULL};
    const char *wrong = take_args(&f->body, room, sizeof room, argv, 6);
    snprintf(file, sizeof file, "%s/%s.yaml", files, name);
    path_of(s, t->id, file, path);
    path_of(s, t->id, files, folder);
    if (wrong)
        return wrong;
    if (mkdir(folder, 0700) != 0)
        return strerror(errno);
    wrong = write_files(s, f, folder);
    if (wrong)
        return wrong;
    if (!write_file(s, path, recipe->bytes, recipe->n) ||
        !etd_child_start(&t->child, s->program, argv, true))
        return strerror(errno);
    t->used = true;
    return NULL;
}

static bool
reject(struct etd_answer *out, int code, const char *text)
{
    out->kind = ETD_REJECTED;
    out->code = code;
    snprintf(out->text, sizeof out->text, "%.*s", (int)sizeof out->text - 1, text);
    return false;
}

bool
etd_start_take(struct etd_starts *s, const struct etd_frame *f, int gpus,
               struct etd_answer *out)
{
    char folder[PATH_MAX], name[ET_RUN_NAME], text[64];
    struct etd_value recipe;
    struct stat st;
    int64_t wanted = etd_get_int(&f->body, "gpus", 0);
    *out = (struct etd_answer){0};
    if (!etd_get_id(&f->body, "id", out->id, ETD_CMD_ID))
        return reject(out, ETD_E_ARGUMENT, "START has no id");
    if (etd_endpoint_make_folder(s->cx, s->folder) != ET_OK) {
        (void)reject(out, ETD_E_UNSAFE, et_error_get(s->cx)->message);
        et_error_clear(s->cx);
        return false;
    }
    path_of(s, out->id, "", folder);
    if (lstat(folder, &st) == 0)
        return true; /* it came before */
    const char *wrong = take_name(s->cx, &f->body, name);
    if (wrong)
        return reject(out, ETD_E_ARGUMENT, wrong);
    if (!etd_find(&f->body, "recipe", &recipe) || recipe.type != ETD_IS_BIN ||
        recipe.n == 0 || recipe.n > ETD_RECIPE_BYTES)
        return reject(out, ETD_E_ARGUMENT, "a recipe has 1 byte to 200 KiB");
    snprintf(text, sizeof text, "%lld %s wanted, and there are %d", (long long)wanted,
             wanted == 1 ? "GPU is" : "GPUs are", gpus);
    if (wanted < 0 || wanted > gpus)
        return reject(out, ETD_E_FULL, text);
    struct etd_start *t = find(s, NULL);
    if (!t)
        return reject(out, ETD_E_FULL, "other recipes are being started");
    remove_old(s);
    if (mkdir(folder, 0700) != 0)
        return errno == EEXIST || reject(out, ETD_E_FULL, strerror(errno));
    memcpy(t->id, out->id, sizeof t->id);
    wrong = begin(s, t, f, &recipe, name);
    if (!wrong)
        return true;
    remove_folder(folder); /* nothing was begun: it may come again */
    return reject(out, ETD_E_ARGUMENT, wrong);
}

bool
etd_start_answer(struct etd_starts *s, const unsigned char *id, struct etd_answer *out)
{
    char folder[PATH_MAX];
    struct stat st;
    if (find(s, id))
        return false;
    if (read_answer(s, id, out))
        return true;
    path_of(s, id, "", folder);
    if (lstat(folder, &st) == 0 &&
        eti_wall(s->cx) - (double)st.st_mtim.tv_sec < LOST_SECONDS)
        return false; /* another process is at it */
    out->kind = ETD_EXPIRED;
    return true;
}

void
etd_starts_step(struct etd_starts *s)
{
    int status;
    for (int i = 0; i < ETD_STARTING; i++)
        if (s->start[i].used && etd_child_step(&s->start[i].child, &status))
            conclude(s, &s->start[i], status);
}

bool
etd_starts_any(const struct etd_starts *s)
{
    bool any = false;
    for (int i = 0; i < ETD_STARTING; i++)
        any = any || s->start[i].used;
    return any;
}
