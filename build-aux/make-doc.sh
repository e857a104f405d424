#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make-doc.sh SOURCE MAN OUT: the reference that people browse: of the public headers of the
# source folder SOURCE by Doxygen, and of the manual pages in MAN, all in HTML in OUT.
# "make doc" calls it. A reference that leads nowhere is an error.
set -eu
source=$1 man=$2 out=$3
fail() {
    echo "make doc: $1" >&2
    exit 1
}
for tool in doxygen perl; do
    command -v $tool >/dev/null || fail "$tool is missing (Debian and Ubuntu: $tool)"
done
if command -v mandoc >/dev/null; then
    page() {
        mandoc -T html -O man='%N.%S.html;https://manpages.debian.org/%N.%S' "$1"
    }
elif command -v groff >/dev/null; then
    page() {
        groff -k -mdoc -T html "$1"
    }
else
    fail 'mandoc or groff is missing (Debian and Ubuntu: mandoc)'
fi
mkdir -p "$out"
rm -rf "$out/api" "$out/man" "$out/index.html"
mkdir "$out/man"
source=$(cd "$source" && pwd) man=$(cd "$man" && pwd) out=$(cd "$out" && pwd)

# Doxygen takes its settings from standard input.
(cd "$source/include" && doxygen -) >"$out/doxygen.log" 2>&1 <<DOXYFILE || {
PROJECT_NAME           = Etude
PROJECT_BRIEF          = "the public interface"
OUTPUT_DIRECTORY       = "$out"
HTML_OUTPUT            = api
GENERATE_LATEX         = NO
INPUT                  = etude
FILE_PATTERNS          = *.h
STRIP_FROM_PATH        = .
INCLUDE_PATH           = .
INPUT_FILTER           = "perl '$source/build-aux/doc-filter.pl'"
OPTIMIZE_OUTPUT_FOR_C  = YES
EXTRACT_ALL            = YES
EXTRACT_STATIC         = YES
MARKDOWN_SUPPORT       = NO
MACRO_EXPANSION        = YES
PREDEFINED             = ET_NODISCARD= "ET_PRINTF(a,b)="
SOURCE_BROWSER         = YES
STRIP_CODE_COMMENTS    = NO
TYPEDEF_HIDES_STRUCT   = YES
SORT_MEMBER_DOCS       = NO
HTML_TIMESTAMP         = NO
HAVE_DOT               = NO
QUIET                  = YES
WARN_IF_UNDOCUMENTED   = NO
WARN_AS_ERROR          = FAIL_ON_WARNINGS
DOXYFILE
    cat "$out/doxygen.log" >&2
    fail 'Doxygen found faults in the public headers'
}

# mandoc looks for the pages that others name in its own folder: there are empty ones first.
cd "$out/man"
for file in "$man"/*.[1357]; do
    : >"${file##*/}.html"
done
for file in "$man"/*.[1357]; do
    # (Its first option is for a page that is there by the name "%N.%S".)
    cp "$file" .
done
for file in *.[1357]; do
    page "$file" >"$file.html"
done
{
    cat <<HEAD
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Etude</title></head><body>
<h1>Etude</h1>
<p><a href="api/index.html">The public interface</a>: what programs and plugins include;
begin with <a href="api/files.html">the files</a>, etude.h first.</p>
<h2>Manual pages</h2>
<ul>
HEAD
    for file in *.[1357]; do
        echo "<li><a href=\"man/$file.html\">${file%.*}(${file##*.})</a></li>"
    done
    echo '</ul></body></html>'
} >"$out/index.html"
rm -f ./*.[1357]
rm -f "$out/doxygen.log"
echo "$out/index.html"
