# SPDX-License-Identifier: Apache-2.0
# layouts.awk: reads the public headers and writes etude/layouts.h, a row for each struct
# that they define: its name, a hash of the name, and a hash of its fields' declarations
# without comments and blanks. See etude/abi.h.
#
#     awk -f layouts.awk etude/*.h >layouts.h

# A hash of 32 bits; every product is below 2^53, so that awk's numbers hold it exactly.
function hash(text,    i, h) {
    h = 5381
    for (i = 1; i <= length(text); i++)
        h = (h * 33 + code[substr(text, i, 1)]) % 4294967291
    return h
}

# TEXT without comments; a comment may begin in one line and end in another.
function bare(text,    out, at) {
    while (1) {
        if (in_comment) {
            at = index(text, "*/")
            if (!at)
                return out
            text = substr(text, at + 2)
            in_comment = 0
        }
        at = index(text, "/*")
        if (!at)
            return out text
        out = out substr(text, 1, at - 1) " "
        text = substr(text, at + 2)
        in_comment = 1
    }
}

BEGIN {
    for (i = 1; i < 256; i++)
        code[sprintf("%c", i)] = i
    print "/* SPDX-License-Identifier: Apache-2.0 */"
    print "/* layouts.h: written by build-aux/layouts.awk; see abi.h. */"
    print "#ifndef ETUDE_LAYOUTS_H\n#define ETUDE_LAYOUTS_H\n"
    printf "#define ET_LAYOUTS(X)"
}

FNR == 1 { in_comment = 0 }

{
    line = bare($0)
    if (name == "") {
        if (line !~ /^struct et_[a-z0-9_]+ \{/)
            next
        name = line
        sub(/^struct /, "", name)
        sub(/ .*/, "", name)
        body = ""
        depth = 0
    }
    body = body line
    opened = gsub(/\{/, "{", line)
    closed = gsub(/\}/, "}", line)
    depth += opened - closed
    if (depth > 0)
        next
    gsub(/[ \t]+/, " ", body)
    gsub(/ ?[{};,*] ?/, "&", body)
    gsub(/ /, "", body)
    printf " \\\n    X(%s, %.0fu, %.0fu)", name, hash(name), hash(body)
    name = ""
}

END { print "\n\n#endif" }
