#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# Every public header stands alone, in C11 and in C++17, without a warning.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Lint;
use Test::More;

my @headers = map { s{^include/}{}r } files(qr/\.h$/, 'include/etude');
my $flags = "-Wall -Wextra -Werror -fsyntax-only -I'$root/include' -I'$build/include'";

sub compiles {
    my ($compiler, $language, $header) = @_;
    open my $cc, '|-', "$compiler -x $language $flags - 2>&1" or die "$compiler: $!";
    print $cc "#include <$header>\n#include <$header>\nint etude_lint;\n";
    return close $cc;
}

sub present {
    my ($compiler) = @_;
    return system("command -v $compiler >/dev/null 2>&1") == 0;
}

for (['cc', 'c', '-std=c11', 'C11'], ['c++', 'c++', '-std=c++17', 'C++17']) {
    my ($compiler, $language, $standard, $name) = @$_;
    SKIP: {
        skip "there is no $compiler", 1 unless present($compiler);
        none("every public header compiles alone as $name",
             grep { !compiles("$compiler $standard", $language, $_) } @headers);
    }
}

my $umbrella = slurp('include/etude/etude.h');
my %inside = map { $_ => 1 } $umbrella =~ /#include "(etude\/\w+\.h)"/g;
# Reached through the headers that need them.
my %through = map { ("etude/$_.h" => 1) } qw(attr device etude);
none('etude.h includes every public header',
     grep { !$inside{$_} && !$through{$_} } @headers);
done_testing();
