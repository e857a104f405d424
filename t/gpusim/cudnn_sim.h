/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn_sim.h: what the files of the simulated cuDNN share. */
#ifndef GPUSIM_CUDNN_SIM_H
#define GPUSIM_CUDNN_SIM_H

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cudnn_graph.h"

struct sim_desc;
typedef std::shared_ptr<const sim_desc> sim_ref;

struct sim_attr {
    cudnnBackendAttributeType_t type;
    std::vector<char> bytes;       /* of anything but descriptors */
    std::vector<sim_ref> children; /* of descriptors */

    template <class T> std::vector<T> as(void) const
    {
        std::vector<T> v(bytes.size() / sizeof(T));
        for (size_t i = 0; i < bytes.size() / sizeof(T); i++)
            v[i] = ((const T *)bytes.data())[i];
        return v;
    }
};

/* A descriptor. Once final it does not change, and those that refer to it share it. */
struct sim_desc {
    cudnnBackendDescriptorType_t type;
    bool final = false;
    std::map<int, sim_attr> attr;

    bool has(int name) const
    {
        return attr.count(name) > 0;
    }
    template <class T> std::vector<T> all(int name) const
    {
        return has(name) ? attr.at(name).as<T>() : std::vector<T>();
    }
    /* A boolean that is false where it was not set. */
    bool flag(int name) const
    {
        return has(name) && one<bool>(name);
    }
    /* The first element; it must be there. */
    template <class T> T one(int name) const
    {
        return attr.at(name).as<T>().at(0);
    }
    /* NULL where the attribute was not set. */
    sim_ref child(int name) const
    {
        return has(name) ? attr.at(name).children.at(0) : sim_ref();
    }
    const std::vector<sim_ref> &children(int name) const
    {
        return attr.at(name).children;
    }
};

/* The attributes by which an operation takes and gives tensors. */
struct sim_operands {
    cudnnBackendDescriptorType_t type;
    int desc, in[3], out, beta; /* 0: none */
};
const sim_operands *sim_operands_of(cudnnBackendDescriptorType_t type);

/* ---- cudnn_check.cc ---- */

/* Are the attributes of D, all of which have the right types, a descriptor that can be?
 * The reason in WHY. */
cudnnStatus_t sim_check(const sim_desc &d, std::string &why);
/* Has any engine the operation graph D? */
cudnnStatus_t sim_supports(const sim_desc &d, std::string &why);

/* ---- cudnn_run.cc ---- */

/* How an engine computes. */
struct sim_engine {
    int64_t index;
    std::vector<cudnnBackendNumericalNote_t> notes;
    int64_t ws;
    bool has(cudnnBackendNumericalNote_t note) const
    {
        for (cudnnBackendNumericalNote_t n : notes)
            if (n == note)
                return true;
        return false;
    }
};
/* Computes the operation graph D. POINTERS: by unique id. */
void sim_compute(const sim_desc &d, const sim_engine &engine,
                 const std::map<int64_t, void *> &pointers);
int64_t sim_size_of(cudnnDataType_t dtype);
/* Bytes from a tensor's first element to the end of its last. */
int64_t sim_extent(const sim_desc &tensor);

#endif
