/* SPDX-License-Identifier: Apache-2.0 */
/* workers_ask.c: what the rows of Workers say. Each worker is asked by a process of its
 * own, so that none waits for another; the answers are those of `etude worker`. */
#include "config.h"

#include "tui/workers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const double AGAIN = 10, RETRY = 12; /* seconds */

void
tui_workers_ask(struct workers *w, struct workers_row *r)
{
    const char *argument[] = {"worker", "list", r->name, "--json", NULL};
    r->next = tui_now(w->app) + (r->state == WORKER_LOST ? RETRY : AGAIN);
    if (tui_job_start(&r->job, w->app->cx, argument, NULL, 0) != ET_OK) {
        snprintf(r->why, sizeof r->why, "%.199s", et_error_get(w->app->cx)->message);
        r->state = WORKER_LOST;
        et_error_clear(w->app->cx);
    }
}

const char *
tui_workers_text(const json_t *all, const char *key)
{
    const char *text = json_string_value(json_object_get(all, key));
    return text ? text : "";
}

bool
tui_workers_is_local(const struct workers_row *r)
{
    return strcmp(r->name, "local") == 0;
}

/* This machine is there without a service: what is known of it. */
static void
stand_in(struct workers_row *r)
{
    r->state = WORKER_READY;
    r->is_alone = true;
    r->why[0] = '\0';
    if (gethostname(r->host, sizeof r->host - 1) != 0)
        snprintf(r->host, sizeof r->host, "this machine");
    snprintf(r->version, sizeof r->version, "%s", PACKAGE_VERSION);
    snprintf(r->role, sizeof r->role, "operator");
    r->cores = sysconf(_SC_NPROCESSORS_ONLN);
    r->gpus = -1;
    r->rtt_ms = 0;
}

static enum workers_state
state_of(const char *word)
{
    return strcmp(word, "ready") == 0     ? WORKER_READY
           : strcmp(word, "refused") == 0 ? WORKER_REFUSED
           : strcmp(word, "version") == 0 ? WORKER_OLD
                                          : WORKER_LOST;
}

/* What list and test say alike. */
static void
take_info(struct workers_row *r, const json_t *all)
{
    r->is_alone = false;
    snprintf(r->host, sizeof r->host, "%.63s", tui_workers_text(all, "host"));
    snprintf(r->version, sizeof r->version, "%.31s", tui_workers_text(all, "version"));
    snprintf(r->role, sizeof r->role, "%.15s", tui_workers_text(all, "role"));
    r->cores = json_integer_value(json_object_get(all, "cores"));
    r->gpus = json_integer_value(json_object_get(all, "gpus"));
    r->rtt_ms = json_number_value(json_object_get(all, "rtt_ms"));
}

void
tui_workers_take(struct workers_row *r, double now)
{
    json_error_t error;
    json_t *list = json_loads(r->job.code == 0 ? r->job.text : "", 0, &error);
    const json_t *all = json_array_get(list, 0);
    const char *why = all ? tui_workers_text(all, "why") : r->job.error;
    r->state = state_of(tui_workers_text(all, "state"));
    et_visible(r->why, sizeof r->why, why, strlen(why));
    if (r->state == WORKER_READY) {
        take_info(r, all);
        r->heard = now;
    }
    json_decref(list);
    if (r->state == WORKER_LOST && tui_workers_is_local(r))
        stand_in(r);
    tui_job_stop(&r->job);
}

/* NaN: it is not said. */
static double
number_of(const json_t *all, const char *key)
{
    const json_t *v = json_object_get(all, key);
    return json_is_number(v) ? json_number_value(v) : NAN;
}

void
tui_workers_take_test(struct workers_row *r, const json_t *all)
{
    struct etd_host_facts *h = &r->host_facts;
    const json_t *one;
    size_t i;
    take_info(r, all);
    r->state = WORKER_READY;
    r->is_tested = true;
    r->bandwidth = json_number_value(json_object_get(all, "bandwidth"));
    *h = (struct etd_host_facts){
        .uptime = json_integer_value(json_object_get(all, "uptime_s")),
        .disk_free = json_integer_value(json_object_get(all, "disk_free")),
        .runs = json_integer_value(json_object_get(all, "runs")),
    };
    snprintf(h->run, sizeof h->run, "%.63s", tui_workers_text(all, "run"));
    snprintf(h->driver, sizeof h->driver, "%.31s", tui_workers_text(all, "driver"));
    json_array_foreach(json_object_get(all, "gpu"), i, one)
    {
        if (i == ETD_HOST_GPUS)
            break;
        h->gpu[i].util = number_of(one, "util");
        h->gpu[i].used = number_of(one, "used");
        h->gpu[i].total = number_of(one, "total");
        h->n_gpus = (int)i + 1;
    }
}
