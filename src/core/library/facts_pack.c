/* SPDX-License-Identifier: Apache-2.0 */
/* facts_pack.c: see facts_pack.h. Types go to those of msgpack that are called the
 * same; integers are of 64 bits in both, and reals keep their bits. */
#include "config.h"

#include "core/library/facts_pack.h"

#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/well_formed.h"

static int
pack(msgpack_packer *k, const json_t *v)
{
    const char *key;
    json_t *child;
    size_t i;
    int bad = 0;
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        bad = msgpack_pack_map(k, json_object_size(v));
        json_object_foreach((json_t *)(uintptr_t)v, key, child)
        {
            bad |= msgpack_pack_str_with_body(k, key, strlen(key));
            bad |= pack(k, child);
        }
        return bad;
    case JSON_ARRAY:
        bad = msgpack_pack_array(k, json_array_size(v));
        json_array_foreach(v, i, child) bad |= pack(k, child);
        return bad;
    case JSON_STRING:
        return msgpack_pack_str_with_body(k, json_string_value(v),
                                          json_string_length(v));
    case JSON_INTEGER:
        return msgpack_pack_int64(k, json_integer_value(v));
    case JSON_REAL:
        return msgpack_pack_double(k, json_real_value(v));
    case JSON_TRUE:
        return msgpack_pack_true(k);
    case JSON_FALSE:
        return msgpack_pack_false(k);
    case JSON_NULL:
        return msgpack_pack_nil(k);
    }
    return -1;
}

bool
eti_facts_pack(const json_t *facts, char **bytes, size_t *n)
{
    msgpack_sbuffer out;
    msgpack_packer k;
    msgpack_sbuffer_init(&out);
    msgpack_packer_init(&k, &out, msgpack_sbuffer_write);
    bool fine = pack(&k, facts) == 0;
    *n = fine ? out.size : 0;
    *bytes = fine ? msgpack_sbuffer_release(&out) : NULL;
    msgpack_sbuffer_destroy(&out);
    return fine;
}

static json_t *unpack(const msgpack_object *o);

static json_t *
unpack_map(const msgpack_object_map *map)
{
    json_t *object = json_object();
    for (uint32_t i = 0; object && i < map->size; i++) {
        const msgpack_object *key = &map->ptr[i].key;
        json_t *v = key->type == MSGPACK_OBJECT_STR ? unpack(&map->ptr[i].val) : NULL;
        if (!v ||
            json_object_setn_new(object, key->via.str.ptr, key->via.str.size, v) != 0) {
            json_decref(object);
            object = NULL;
        }
    }
    return object;
}

static json_t *
unpack_array(const msgpack_object_array *list)
{
    json_t *array = json_array();
    for (uint32_t i = 0; array && i < list->size; i++) {
        json_t *v = unpack(&list->ptr[i]);
        if (!v || json_array_append_new(array, v) != 0) {
            json_decref(array);
            array = NULL;
        }
    }
    return array;
}

static json_t *
unpack(const msgpack_object *o)
{
    switch (o->type) {
    case MSGPACK_OBJECT_MAP:
        return unpack_map(&o->via.map);
    case MSGPACK_OBJECT_ARRAY:
        return unpack_array(&o->via.array);
    case MSGPACK_OBJECT_STR:
        return json_stringn(o->via.str.ptr, o->via.str.size);
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        return json_integer(o->via.i64);
    case MSGPACK_OBJECT_FLOAT64:
        return json_real(o->via.f64);
    case MSGPACK_OBJECT_BOOLEAN:
        return json_boolean(o->via.boolean);
    case MSGPACK_OBJECT_NIL:
        return json_null();
    default:
        return NULL;
    }
}

json_t *
eti_facts_unpack(const char *bytes, size_t n)
{
    msgpack_zone zone;
    msgpack_object o;
    size_t at = 0;
    json_t *facts = NULL;
    if (n == 0 || !eti_is_well_formed(bytes, n) ||
        !msgpack_zone_init(&zone, MSGPACK_ZONE_CHUNK_SIZE))
        return NULL;
    if (msgpack_unpack(bytes, n, &at, &zone, &o) == MSGPACK_UNPACK_SUCCESS)
        facts = unpack(&o);
    msgpack_zone_destroy(&zone);
    return facts;
}
