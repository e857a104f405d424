#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# What documents name is there: public headers and manual pages name what is installed,
# and the chapters of doc/ and HACKING, whose reader has the sources, files of these.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Lint;
use Test::More;

# Installed beside the headers and pages: examples, chapters, recipes.
my %installed = map { $_ => 1 } qw(README.md HACKING NEWS);
for my $list (files(qr/(sources|Makefile)\.am$/, 'examples', 'recipes'), 'Makefile.am') {
    my $text = slurp($list) =~ s/\\\n//gr;
    while ($text =~ /^nobase_dist_(?:doc|pkgdata)_DATA \+?= (.*)/gm) {
        $installed{$_} = 1 for split ' ', $1;
    }
}
ok($installed{'examples/plugin.c'} && $installed{'doc/trainer'}, 'what is installed is known');

my $folders = qr/src|core|kernels|dist|tui|cli|t|man|build-aux|python|recipes|examples|bench|doc/;
# Paths below FOLDERS in TEXT, which may go on after a line of a comment.
sub paths {
    my ($text) = @_;
    return $text =~ /(?<![\w.\/<~-])((?:$folders)\/[\w.\/*-]*\w)/g;
}

my @not_installed;
my @public = (files(qr/\.(h|def)$/, 'include/etude'), files(qr/\.mdoc$/, 'man/prose'));
for my $file (@public) {
    my $text = slurp($file) =~ s/^[ \t]*#[ \t]*include.*//gmr;
    $text =~ s{\\-}{-}g;
    for my $path (paths($text)) {
        push @not_installed, "$file: $path" unless $installed{$path} || $path =~ m{/[A-Z]+\b};
    }
    # In a comment, a file of C by its name alone is an example.
    while ($text =~ /(?<![\w.\/])(\w+\.(?:c|cc|cu))\b/g) {
        push @not_installed, "$file: $1"
            unless $installed{"examples/$1"} || $text =~ /-o \w+(?:\.so)? \Q$1/;
    }
}
none('public headers and manual pages name installed files', @not_installed);

# What core/... and the like mean to the sources' own readers.
sub is_there {
    my ($path) = @_;
    my @places = map { "$root/$_" } $path, "src/$path";
    return 1 if grep { -e } @places;
    return 1 if grep { my @found = glob "$_.*"; @found > 0 } @places;
    return $path =~ /\*/ && grep { my @found = glob $_; @found > 0 && -e $found[0] } @places;
}

my @gone;
for my $file ('HACKING', 'README.md', files(qr/^[^.]*$/, 'doc')) {
    my $text = slurp($file);
    for my $path (paths($text)) {
        push @gone, "$file: $path"
            unless is_there($path) || -e "$build/$path" || $path =~ m{/[A-Z]+\b};
    }
}
none('chapters name files that are there', @gone);
done_testing;
