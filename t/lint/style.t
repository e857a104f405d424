#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# The layout of what clang-format does not look at, and the limits of HACKING, "Committing":
# blanks, widths, lengths, licenses, and no promises in comments.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Lint;
use Test::More;

# Columns of a line, by the ending of the file's name: tables and kernels may be wider.
my %columns = (c => 88, h => 88, cc => 88, def => 100, cu => 100, cuh => 100);
my $lines = 700; # of a source: one that has more holds a second subject

my @folders = qw(src include t bench examples python recipes man tools);
my @c = files(qr/\.(c|h|def|cc|cuh?)$/, @folders);
# (What fuzz targets begin with is as odd as it is meant to be.)
my @text = (@c, grep { !m{^t/fuzz/} } files(qr/\.(am|t|pm|py|sh|yaml|[1-9])$/, @folders),
            files(qr/./, 'doc'),
            grep { -f "$root/$_" } qw(configure.ac Makefile.am bootstrap README.md HACKING NEWS AUTHORS));

# A license stands in the first line, or below the one that names an interpreter.
my $license = 'SPDX-License-Identifier: Apache-2.0';
my @licensed = (@c, grep { $_ !~ m{^t/fuzz/.*-seeds/|^bench/results/} }
                files(qr/\.(am|t|pm|pl|py|sh)$/, @folders),
                files(qr{/(find-cuda|make-\w+)\.sh$|/doc-filter\.pl$|/et_\w+\.m4$}, 'build-aux', 'm4'),
                qw(.ci/run bench/gpu/first-hour bootstrap configure.ac etude.pc.in Makefile.am));
my @unlicensed = grep {
    -f "$root/$_" && slurp($_) !~ m{\A(?:#!.*\n)?(?:/\* |\# |dnl )\Q$license\E(?: \*/)?\n}
} @licensed;

my (@tabs, @wide, @blanks, @ends, @promises, @long);
my %is_c = map { $_ => 1 } @c;
for my $path (@text) {
    my $text = slurp($path);
    my @line = split /\n/, $text;
    my $most = $columns{($path =~ /\.(\w+)$/)[0] // ''};
    push @ends, $path if length $text && $text !~ /[^\n]\n\z/;
    push @long, sprintf '%s: %d lines', $path, scalar @line
        if $path =~ /^src/ && @line > $lines;
    for my $i (0 .. $#line) {
        my $at = "$path:" . ($i + 1);
        push @blanks, $at if $line[$i] =~ /[ \t\r]$/;
        push @promises, $at
            if $path ne 't/lint/style.t' && $line[$i] =~ /\b(TODO|FIXME|XXX)\b/;
        next unless $is_c{$path};
        push @tabs, $at if $line[$i] =~ /\t/;
        utf8::decode(my $wide = $line[$i]);
        push @wide, $at if length $wide > $most;
    }
}
none('C is indented with spaces', @tabs);
none('C has at most 88 columns, tables and CUDA 100', @wide);
none('no line ends in blanks', @blanks);
none('every file ends in one newline', @ends);
none('known gaps are NEEDSWORK sentences', @promises);
none('every source names its license', @unlicensed);
none("no source has more than $lines lines", @long);

# A list whose last line lost its backslash: automake hands what follows to the rule above
# it in the whole Makefile, which runs it as a command.
my @stray;
for my $path (grep { /\.am$/ } @text) {
    my ($recipe, $continues) = (0, 0);
    my $at = 0;
    for my $line (split /\n/, slurp($path)) {
        $at++;
        if (!$continues && $line !~ /^(#|$|if |else|endif)/) {
            if ($line =~ /^\t/) { push @stray, "$path:$at" unless $recipe }
            else { $recipe = $line =~ /^[^=]*:(?!=)/ }
        }
        $continues = $line =~ /\\$/;
    }
}
none('every line of a Makefile.am that begins with a tab belongs to a rule or a list', @stray);
done_testing();
