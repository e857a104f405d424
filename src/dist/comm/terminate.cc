/* SPDX-License-Identifier: Apache-2.0 */
/* terminate.cc: see terminate.h. What the exception is, is asked of the C++ runtime:
 * taking hold of it could need the memory that there is not. */
#include "dist/comm/terminate.h"

#include <exception>
#include <new>
#include <typeinfo>

#include <cxxabi.h>

namespace
{

void (*told)();
std::terminate_handler before;

void
on_terminate()
{
    const std::type_info *type = abi::__cxa_current_exception_type();
    if (type && *type == typeid(std::bad_alloc))
        told();
    before();
}

} // namespace

extern "C" void
etd_on_bad_alloc(void (*f)(void))
{
    std::terminate_handler last = std::set_terminate(on_terminate);
    told = f;
    if (last != on_terminate)
        before = last;
}
