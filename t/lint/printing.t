#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# What may come from outside (names of files, runs and hosts, lines of logs) is printed by
# et_print, et_print_json or what passes et_visible, so that no escape of it reaches a
# terminal (RELIABILITY.md 7.8). In the files that print for people every other call that
# prints a text says why it may: "raw:", in a comment within it or in the two lines before.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Lint;
use Test::More;

my @files = (files(qr/\.c$/, 'src/cli'),
    map { "src/core/loggers/$_.c" } qw(bar plain progress progress_json));
my $literal = qr/"(?:[^"\\]|\\.)*"/;
my $balanced = qr/(?<b>\((?:$literal|'(?:[^'\\]|\\.)'|[^()"']|(?&b))*\))/;

# Calls in TEXT that print a text: [line, call].
sub findings {
    my ($text) = @_;
    my @found;
    while ($text =~ /(?<![\w.>])(?<name>f?printf|dprintf|v?fprintf|f?puts|fwrite)\s*$balanced/g) {
        my ($name, $call, $at) = ($+{name}, $+{b}, $-[0]);
        my $before = substr $text, 0, $at;
        my $line = 1 + ($before =~ tr/\n//);
        my $formats = join '', $call =~ /$literal/g;
        my $is_text = $name =~ /printf/ ? $formats =~ /%[-0-9.*+ #]*s/ || $call !~ /$literal/
                                        : $call !~ /^\(\s*$literal/;
        next if !$is_text || $call =~ /^\(\s*et_visible\(/;
        my ($near) = $before =~ /((?:[^\n]*\n){0,2}[^\n]*)\z/;
        my ($rest) = substr($text, $at) =~ /\A(?:.{@{[length $call]}})?[^\n]*\n?/s ? $& : '';
        next if "$near$rest" =~ /\braw:/;
        push @found, [$line, "$name$call"];
    }
    return @found;
}

is(scalar findings('x(); printf("%d\n", 3); puts("a"); et_print(f, "%s", name);'), 0,
    'numbers, words of ours and et_print may be printed');
is(scalar findings("printf(\"%s: fits\\n\", name);\nfputs(name, f); fprintf(f, \"%-3s\", x(\"a)\"));\n"), 3,
    'texts by other ways are found');
is(scalar findings("/* raw: it is ours */\nputs(text);\nfputs(text, f); /* raw: likewise */\n"), 0,
    'but where it is said why');

my @found;
for my $path (@files) {
    open my $in, '<', "$root/$path" or die "$path: $!";
    local $/;
    push @found, map { "$path:$_->[0]: " . ($_->[1] =~ s/\s+/ /gr) } findings(<$in>);
}
none('texts are printed by et_print, or it is said why they need not be', @found);
done_testing();
