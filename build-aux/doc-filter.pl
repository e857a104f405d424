#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# doc-filter.pl HEADER: a public header as Doxygen reads it ("make doc"). Our comments are
# plain text with indented tables and formulas; here they get Doxygen's marks, and what is
# a command or a reference to Doxygen is quoted. Lines keep their numbers.
use strict;
use warnings;

my ($path) = @ARGV;
open my $in, '<', $path or die "$path: $!";
local $/;
my $text = <$in>;
my $is_first = 1;

# Doxygen's words and links in TEXT mean themselves.
sub quoted {
    my ($t) = @_;
    $t =~ s/([\\\@&\$#<>%"])/\\$1/g;
    $t =~ s/::/\\::/g;
    return $t;
}

# The lines of a comment: prose stays prose, what is indented stays as it is.
sub body {
    my ($inside) = @_;
    my @line = split /\n/, $inside, -1;
    my $verbatim = 0;
    for my $i (0 .. $#line) {
        my ($blank, $rest) = $line[$i] =~ /^\s*\*?(\s*)(.*)$/;
        ($blank, $rest) = ('', $line[$i] =~ s/^\s+//r) if $i == 0;
        $rest =~ s/\s+$//;
        my $is_table = $i > 0 && length $blank >= 3 && length $rest;
        my $mark = $is_table && !$verbatim ? '@verbatim ' : !$is_table && $verbatim ? '@endverbatim ' : '';
        # (A table's command stands in front of its first line: no line is added.)
        $line[$i] = ($mark eq '@endverbatim ' ? '@endverbatim ' : $mark eq '@verbatim ' ? '@verbatim ' : '') .
            ($is_table ? $blank . $rest : quoted($rest));
        $verbatim = $is_table;
    }
    $line[-1] .= ' @endverbatim' if $verbatim;
    return join "\n", @line;
}

$text =~ s{/\*(?!\*)(.*?)\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'}{
    my ($whole, $inside, $at) = ($&, $1, $-[0]);
    if (!defined $inside || $inside =~ /^ SPDX-/) { # the license is on a line of its own
        $whole
    } else {
        my $start = rindex($text, "\n", $at) + 1;
        my $before = substr $text, $start, $at - $start;
        my $after = substr $text, $at + length $whole, 2;
        my $is_file = $is_first && $inside =~ /^\s*\w+\.h:/;
        $is_first = 0;
        # A heading, a comment within a macro, or one that a blank line parts from what follows.
        my $is_heading = $inside =~ s/^\s*---- (.*?) ----[ \t]*(?=\n|$)/ $1:/;
        if (($is_heading && $inside !~ /\n.*\w/s) || $whole =~ /\\\n/ || substr($text, $start) =~ /\A[^\n]*\\\n/ ||
            substr($text, 0, $start) =~ /\\\n\z/ || $before =~ /^\s*#/ || (!$is_file && $before =~ /^\s*$/ && $after =~ /^\n\s*\n?/ && $after eq "\n\n")) {
            $whole
        } elsif ($is_file) {
            $inside =~ s/^\s*\w+\.h:\s*//;
            '/** @file ' . ($path =~ s{.*/}{}r) . ' @brief ' . body($inside) . ' */'
        } elsif ($before =~ /\S/) {
            '/**< ' . body($inside) . ' */'
        } else {
            '/** ' . body($inside) . ' */'
        }
    }
}gse;
print $text;
