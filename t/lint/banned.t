#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# Functions that are not used: those that overrun buffers, lose errors or keep hidden
# state anywhere; those that speak to the terminal or end the process below cli.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Lint;
use Test::More;

my $anywhere = qr/\b(strcpy|strcat|sprintf|vsprintf|strtok|atoi|atol|atoll|atof|gets|rand|srand|
                     alloca|longjmp|setjmp)\s*\(/x;
my $below_cli = qr/\b(exit|_exit|_Exit|quick_exit|abort|printf|vprintf|puts|putchar|perror|
                      system|popen|signal)\s*\(|\b(stdout|stderr)\b/x;
# An assertion that fails is a bug of ours; a context that is closed too early and has no
# log says so there, since its error goes where nobody looks any more; bible_kjv asks a program for the text; zmq
# numbers connections by rand(), which a worker seeds and a test foretells; libjpeg and libpng
# leave what found a damaged picture by longjmp alone, to the one function that called them;
# the process that a program could not be run in ends there.
my %allowed = (
    'src/core/base/assert.h' => qr/^abort$/,
    'src/core/base/ctx.c' => qr/^stderr$/,
    'src/core/data/bible_kjv.c' => qr/^popen$/,
    'src/core/image/jpeg.c' => qr/^(set|long)jmp$/,
    'src/core/image/png.c' => qr/^(set|long)jmp$/,
    'src/dist/run/spawn.c' => qr/^_exit$/,
    'src/dist/worker/worker.c' => qr/^srand$/,
    't/dist/intruder.c' => qr/^s?rand$/,
);

sub uses {
    my ($pattern, @paths) = @_;
    my @found;
    for my $path (@paths) {
        my $line = 0;
        for (split /\n/, code($path)) {
            $line++;
            while (/$pattern/g) {
                my $name = $1 // $2;
                push @found, "$path:$line: $name"
                    unless $allowed{$path} && $name =~ $allowed{$path};
            }
        }
    }
    return @found;
}

my @sources = files(qr/\.(c|h|cc|cu|def)$/, 'src', 'include', 't', 'bench', 'examples');
none('nothing calls a banned function', uses($anywhere, @sources));
none('no layer below cli prints or ends the process',
     uses($below_cli, grep { m{^(include|src/(kernels|core|dist|tui))/} } @sources));

# A thread that takes signals where the main one blocks them ends the process with the
# first (src/cli/signals.c). What OpenMP and the module's count of threads begin inherits.
none('threads are begun by eti_thread_begin, which keeps signals from them',
     uses(qr/\b(pthread_create)\s*\(/, grep { m{^src/} && !m{^src/(core/base/thread|kernels/cpu/device)\.c$} } @sources));

# Threads share nothing but queues (STYLE.md section 4).
my @state;
for my $path (grep { m{^src/(kernels|core|dist)/.*\.c$} } @sources) {
    my $line = 0;
    for (split /\n/, code($path)) {
        $line++;
        push @state, "$path:$line: $_"
            if /^\s*static\s+(?!const\b|inline\b|_Thread_local\b)(?!.*\bconst\b)[\w\s\*]+?
                \w+(\[[^\]]*\])*\s*(=[^=]|;)/x;
    }
}
none('no file keeps state of its own', @state);
done_testing();
