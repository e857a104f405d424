/* SPDX-License-Identifier: Apache-2.0 */
/* target.c: see target.h. */
#include "config.h"

#include "dist/worker/target.h"

#include <stdio.h>
#include <string.h>

#include "dist/wire/endpoint.h"
#include "dist/wire/errors.h"

/* "SCHEME://HOST[/RUN]" into its two parts. */
static et_status
split(struct et_ctx *cx, const char *text, struct etd_target *out)
{
    const char *host = text + strlen("tcp://"); /* both schemes have three letters */
    size_t n = strcspn(host, "/");
    const char *run = host[n] ? host + n + 1 : "";
    if (n == 0 || (size_t)(host - text) + n >= sizeof out->address)
        return ETD_FAIL(cx, ET_EINVAL, ADDRESS, "%s names no host", text);
    memcpy(out->address, text, (size_t)(host - text) + n);
    out->address[(size_t)(host - text) + n] = '\0';
    if (!*run)
        return ET_OK;
    ET_TRY(et_run_name_check(cx, run));
    memcpy(out->run, run, strlen(run) + 1);
    return ET_OK;
}

static et_status
add_keys(struct et_ctx *cx, const struct etd_worker *w, const char *folder,
         struct etd_target *out)
{
    char path[4096];
    if (strncmp(out->address, "tcp://", 6) != 0)
        return ET_OK;
    ET_TRY(etd_address_check_port(cx, out->address, 1));
    if (!w || !w->key[0]) {
        et_status status =
            ETD_FAIL(cx, ET_EINVAL, KEYS, "the key of %s is not known", out->address);
        et_hint(cx,
                "etude worker add NAME %s KEY, with the key that its `etude worker "
                "keygen` shows",
                out->address);
        return status;
    }
    memcpy(out->server, w->key, sizeof out->server);
    snprintf(path, sizeof path, "%s/curve.key", folder);
    et_status status = etd_keys_read(cx, path, &out->keys);
    out->has_keys = status == ET_OK;
    return status;
}

et_status
etd_target_parse(struct et_ctx *cx, const char *text, const char *folder,
                 struct etd_target *out, bool *is)
{
    char path[4096];
    void *block;
    *out = (struct etd_target){0};
    bool has_scheme =
        strncmp(text, "tcp://", 6) == 0 || strncmp(text, "ssh://", 6) == 0;
    const char *at = strrchr(text, '@');
    *is = true;
    snprintf(path, sizeof path, "%s/workers.yaml", folder);
    ET_TRY(et_alloc(cx, sizeof(struct etd_worker_list), &block));
    struct etd_worker_list *list = block;
    et_status status = etd_workers_read(cx, path, list);
    const struct etd_worker *w = NULL;
    if (status == ET_OK && has_scheme) {
        status = split(cx, text, out);
        w = etd_workers_find(list, out->address);
    } else if (status == ET_OK) {
        w = etd_workers_find(list, at ? at + 1 : text);
        *is = w != NULL;
        if (w)
            memcpy(out->address, w->address, sizeof out->address);
        if (w && at && at > text) {
            snprintf(path, sizeof path, "%.*s", (int)(at - text), text);
            status = et_run_name_check(cx, path);
            if (status == ET_OK)
                memcpy(out->run, path, strlen(path) + 1);
        }
    }
    if (status == ET_OK && *is)
        snprintf(out->place, sizeof out->place, "%s",
                 w ? w->name : out->address + strlen("tcp://"));
    if (status == ET_OK && *is)
        status = add_keys(cx, w, folder, out);
    et_free(cx, block);
    return status;
}

et_status
etd_target_local(struct et_ctx *cx, const char *name, const char *id,
                 struct etd_target *out)
{
    *out = (struct etd_target){0};
    ET_TRY(et_run_name_check(cx, name));
    memcpy(out->run, name, strlen(name) + 1);
    (void)etd_run_id(id, out->id);
    return etd_endpoint_find(cx, name, id, out->address);
}

struct etd_client_options
etd_target_options(const struct etd_target *t)
{
    struct etd_client_options o = {
        .channel =
            {
                .target = t->address,
                .keys = t->has_keys ? &t->keys : NULL,
                .server = t->has_keys ? t->server : NULL,
            },
        .run = t->run[0] ? t->run : NULL,
    };
    memcpy(o.id, t->id, sizeof o.id);
    return o;
}
