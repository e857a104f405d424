#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# Every public header stands alone and beside the others, in C99 to C23 and in C++17,
# without a warning; values of enumerations do not depend on their order; and etude.h has
# all headers, and says in which order to read them.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Lint;
use Test::More;

my @headers = map { s{^include/}{}r } files(qr/\.h$/, 'include/etude');
my $flags = "-pedantic -Wall -Wextra -Werror -fsyntax-only -I'$root/include' -I'$build/include'";

# Do HEADERS, in their order and each twice, compile in one file?
sub compiles {
    my ($compiler, $language, @headers) = @_;
    open my $cc, '|-', "$compiler -x $language $flags - 2>&1" or die "$compiler: $!";
    print $cc map("#include <$_>\n#include <$_>\n", @headers), "int etude_lint;\n";
    return close $cc;
}

sub present {
    my ($compiler) = @_;
    return system("command -v $compiler >/dev/null 2>&1") == 0;
}

# Alone in the standards that differ most, and all in one file, in two orders, in each.
for (['cc', 'c', '-std=c99', 'C99', 1], ['cc', 'c', '-std=c11', 'C11', 0],
     ['cc', 'c', '-std=c17', 'C17', 0], ['cc', 'c', '-std=c2x', 'C23', 1],
     ['c++', 'c++', '-std=c++17', 'C++17', 1], ['clang++', 'c++', '-std=c++17', 'C++17 by Clang', 0]) {
    my ($compiler, $language, $standard, $name, $alone) = @$_;
    SKIP: {
        skip "there is no $compiler", 1 + $alone unless present($compiler);
        none("every public header compiles alone as $name",
             grep { !compiles("$compiler $standard", $language, $_) } @headers) if $alone;
        ok(compiles("$compiler $standard", $language, @headers) &&
           compiles("$compiler $standard", $language, reverse @headers),
           "all of them compile together as $name, whichever comes first");
    }
}

# Programs that were compiled before a value came into the middle would mean another one.
my (@unnumbered, @tables);
for my $header (@headers) {
    my $text = slurp("include/$header") =~ s{/\*.*?\*/}{}gsr;
    while ($text =~ /\benum (et_\w+) \{([^#}]*)\}/g) {
        my ($name, $values) = ($1, $2);
        push @unnumbered, map { "$header: $name: $_" } grep { /\S/ && !/=/ }
            map { s/\s+//gr } split /,/, $values;
    }
}
none('values of public enumerations are written down', @unnumbered);
for my $header (@headers) {
    my $text = slurp("include/$header");
    while ($text =~ /^#define (ET_\w+_MAP)\(X\)((?:.*\\\n)+.*)/gm) {
        my ($table, $rows, %used) = ($1, $2 =~ s{/\*.*?\*/}{}gsr);
        my @rows = $rows =~ /\bX\(([^)]*)/g;
        push @tables, "$table has no rows" unless @rows;
        for my $row (@rows) {
            my ($value) = $row =~ /^(?:\w+, )?(\d+),/;
            push @tables, "$table: $row" if !defined $value || $used{$value}++;
            # (The count is one more than the last.)
            push @tables, "$table: $row is out of order"
                if defined $value && $row !~ /^\d/ && $value != keys(%used) - 1;
        }
    }
}
my @op = sort { $a <=> $b } slurp('include/etude/ops.def') =~ /^ET_OP\w*\(\w+, (\d+)\)/mg;
push @tables, map { "ops.def: $_" } grep { $op[$_] != $_ } 0 .. $#op;
none('so are those of tables, each once', @tables);

my $umbrella = slurp('include/etude/etude.h');
my %inside = map { $_ => 1 } $umbrella =~ /#include "(etude\/\w+\.h)"/g;
# Reached through the headers that need them.
my %through = map { ("etude/$_.h" => 1) } qw(attr device etude);
none('etude.h includes every public header',
     grep { !$inside{$_} && !$through{$_} } @headers);

# The comment of etude.h gives the order to read them in.
my ($comment) = $umbrella =~ m{^/\* etude\.h: (.*?)\*/}ms;
my (%place, $n);
$place{$1} //= ++$n while $comment =~ /\b(\w+\.h)\b/g;
none('the comment of etude.h names every public header',
     grep { !$place{$_} } map { s{.*/}{}r } grep { $_ ne 'etude/etude.h' } @headers);
done_testing();
