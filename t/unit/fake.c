/* SPDX-License-Identifier: Apache-2.0 */
/* fake.c: a library with nothing in it. It is built under the names of CUDA's
 * libraries, and as a module that is linked to three of them, for t/unit/gpu_libs. */
int et_fake_library;
