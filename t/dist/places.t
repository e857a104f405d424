#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# A run is reached at a socket in a folder of its user's. Folders go, and are made again,
# and are not always what they should be: the run says so, and is reached again.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use File::Path qw(remove_tree);
use Processes;
use Test::More;

my ($code, $out);
my $sockets = "$dir/runtime/etude";
my $common = "/tmp/etude-$<";
# A command that works, as soon as it does.
sub works { my @command = @_; return until_true(sub { ($code, $out) = command(@command); !$code }) }
sub says { my ($run, $what) = @_; return until_true(sub { slurp("$run.err") =~ $what && slurp("$run/events.log") =~ $what }) }

# ---- what is there is not safe ----

mkdir $sockets, 0755;
my $front = start_with($etude, '', 'unsafe');
is finish($front), 77, 'where others can enter the folder of sockets no run begins: 77';
like slurp('unsafe.err'), qr/error E5001: \S+ has mode 0755: others can enter/, 'which is said';
like slurp('unsafe.err'), qr/hint: chmod 700 /, 'with what helps';
ok !-e 'unsafe', 'and nothing is left of it';
($code) = command('train', '-d', 'r.yaml', '--run_directory', 'unsafe');
is $code, 77, 'nor in the background';
rmdir $sockets;
open my $file, '>', $sockets or die;
is finish(start_with($etude, '', 'unsafe')), 77, 'a file in the place of the folder: 77';
unlink $sockets;
mkdir $sockets, 0700;
open $file, '>', "$sockets/a.sock" or die;
$front = start('a');
ok works('pause', 'a'), 'a file in the place of its socket: the run listens beside it' or diag $out;
ok -f "$sockets/a.sock", 'and leaves it alone';
unlink "$sockets/a.sock";

# ---- it goes ----

remove_tree($sockets);
ok works('continue', 'a'), 'with its folder removed a run is reached again' or diag $out;
ok says('a', qr/is gone: the run listens at \S+ now/), 'and says so, on the screen and in its log';
my ($socket) = glob "$sockets/*.sock";
unlink $socket;
ok works('pause', 'a'), 'and so with its socket alone' or diag $out;

remove_tree("$dir/runtime");
ok works('continue', 'a'), 'with all of XDG_RUNTIME_DIR removed it listens in /tmp' or diag $out;
ok says('a', qr{listens at \Q$common\E/}), 'and says where';
mkdir "$dir/runtime", 0700;
ok works('pause', 'a'), 'where it is found when the folder is there again' or diag $out;

# ---- it goes, and what comes is not safe ----

my $b = start('b');
ok until_true(sub { -S "$sockets/b.sock" }), 'another run listens';
remove_tree($sockets);
mkdir $sockets, 0755;
ok says('b', qr/no command reaches it: \S+ has mode 0755/), 'a folder that others can enter instead: the run says that it is not reached';
($code, $out) = command('stop', 'b');
is $code, 77, 'commands are refused for that: 77';
like $out, qr/has mode 0755.*\n.*hint: chmod 700/, 'with the reason' or diag $out;
ok works('continue', 'a'), 'a run that listens elsewhere is none the worse' or diag $out;
my $at = last_batch('b');
ok until_true(sub { last_batch('b') > $at }), 'it trains on';
chmod 0700, $sockets;
ok works('stop', 'b'), 'with the folder safe again it is reached' or diag $out;
is finish($b), 75, 'and ends as it was asked to';
ok works('stop', 'a'), 'the first one, too' or diag $out;
is finish($front), 75, 'ends so';
ok !glob("$sockets/[ab]*.sock"), 'neither leaves a socket';
unlink glob "$common/a.lock $common/a-*.lock";
rmdir $common;

# ---- files of the run ----

my $l = start('l');
until_true(sub { -e 'l/logs/rank0.txt' });
sleep 2; # it is looked at once a second: what is removed has been seen
my ($first) = slurp('l/logs/rank0.txt') =~ /^(.*)\n/;
remove_tree('l/logs');
ok until_true(sub { slurp('l.err') =~ /rank0.txt was removed/ }), 'a log that is removed is told of';
ok until_true(sub { slurp('l/logs/rank0.txt') =~ /^\Q$first\E\n/ }), 'and made again, with what was in it';
unlink 'l/metrics.jsonl';
ok until_true(sub { slurp('l/metrics.jsonl') =~ /"ba":1,/ }), 'so are the numbers';
ok until_true(sub { slurp('l.err') =~ /metrics.jsonl was removed: it is made again\n/ }), 'which is said';
my $had = slurp('l/events.log');
unlink 'l/events.log';
ok until_true(sub { slurp('l.err') =~ /events.log was removed: it is made again\n/ }), 'so are the records';
is substr(slurp('l/events.log'), 0, length $had), $had, 'all of them';
$at = length slurp('l/events.log');
ok until_true(sub { length(slurp('l/events.log')) > $at }), 'others come behind them';
ok until_true(sub { `cd $dir && $etude attach l --dump-screen 100x32 2>&1 </dev/null` =~ / live/ }),
    'and who comes now sees the run';
ok works('stop', 'l'), 'the run goes on meanwhile' or diag $out;
is finish($l), 75, 'and saves';

# ---- others ----

SKIP: {
    skip 'root alone can be two users', 3 if $>;
    my $c = start('c');
    ok until_true(sub { -S "$sockets/c.sock" }), 'a run listens';
    rename "$sockets/c.sock", "$sockets/was" or die;
    my $pid = fork // die;
    if (!$pid) {
        require Socket;
        require IO::Socket::UNIX;
        # What stands there listens, and is another user's.
        my $s = IO::Socket::UNIX->new(Local => "$sockets/c.sock", Listen => 1) or POSIX::_exit(1);
        chown 65534, 65534, "$sockets/c.sock";
        sleep 300;
        POSIX::_exit(0);
    }
    until_true(sub { my @s = stat "$sockets/c.sock"; @s && $s[4] == 65534 });
    ok works('stop', 'c'), "with another user's socket in the place the run listens beside it" or diag $out;
    kill 'KILL', $pid;
    waitpid $pid, 0;
    is finish($c), 75, 'and is stopped there';
}
done_testing();
