#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What "make doc" writes: no comment of a public header that Doxygen cannot read, a page for
# each header and each manual page, and no reference that leads nowhere. make check-long
# runs it: Doxygen is not among what Etude is built with.
. "$(dirname "$0")/../tap.sh"
for tool in doxygen perl; do
    command -v $tool >/dev/null || skip_all "no $tool"
done
command -v mandoc >/dev/null || command -v groff >/dev/null || skip_all 'no mandoc, no groff'
own_folder etude-doc
shown=said

sh "$ET_SRCDIR/build-aux/make-doc.sh" "$ET_SRCDIR" "$ET_BUILDDIR/man/out" out >made 2>said
ok $? 'the reference is written without a warning of Doxygen'
[ -s out/index.html ] || finish

: >said
for header in "$ET_SRCDIR"/include/etude/*.h; do
    name=$(basename "$header" .h)
    [ -s "out/api/${name}_8h.html" ] || echo "$name.h" >>said
done
[ ! -s said ]
ok $? 'every public header has a page'
: >said
for page in "$ET_BUILDDIR"/man/out/*.[1357]; do
    [ -s "out/man/$(basename "$page").html" ] || echo "$page" >>said
done
[ ! -s said ]
ok $? 'every manual page has one, too'

# A comment with a reference that nobody has makes the whole fail.
mkdir -p broken/include broken/build-aux
cp -r "$ET_SRCDIR/include/etude" broken/include
cp "$ET_SRCDIR"/build-aux/doc-filter.pl "$ET_SRCDIR"/build-aux/make-doc.sh broken/build-aux
printf '/** See @ref et_nothing. */\nint et_something(void);\n' >broken/include/etude/broken.h
! sh broken/build-aux/make-doc.sh broken "$ET_BUILDDIR/man/out" wrong >said 2>&1 && grep -q et_nothing said
ok $? 'a reference to what is not there is an error'

perl -e '
    use File::Basename;
    my (%there, %mark);
    for my $page (@ARGV) {
        open my $in, "<", $page or die "$page: $!";
        local $/;
        my $text = <$in>;
        $there{$page} = $text;
        $mark{$page}{$1} = 1 while $text =~ /(?:id|name)="([^"]+)"/g;
    }
    for my $page (@ARGV) {
        while ($there{$page} =~ /(?:href|src)="([^"]+)"/g) {
            my ($file, $part) = split /#/, $1, 2;
            next if $file =~ /^(https?|mailto|javascript):/;
            $file = $file eq "" ? $page : dirname($page) . "/$file";
            $file =~ s{^out/man/\.\./}{out/};
            print "$page: $1\n" if !-e $file;
            print "$page: $1\n" if defined $part && $part ne "" && $mark{$file} && !$mark{$file}{$part};
        }
    }' $(find out -name '*.html') >said
[ ! -s said ]
ok $? 'and no link of any page leads nowhere'
finish
