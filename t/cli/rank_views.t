#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is seen of several ranks at once: their traces in one file, their memory in one
# record.
. "$(dirname "$0")/cli.sh"
if ! ldd "$etude" 2>/dev/null | grep -q libgloo && ! ldd "$ET_BUILDDIR/.libs/etude" 2>/dev/null | grep -q libgloo; then
    echo "1..0 # SKIP built without Gloo"
    exit 0
fi
cat >r.yaml <<'R'
max_duration: 9ba
seed: 3
model: {name: mlp, hidden: 16, layers: 1}
train_data: {name: synthetic_images, batch_size: 12, num_samples: 60, workers: 0}
optimizer: {name: sgd, lr: 0.1}
profiler: {skip_first: 1, warmup: 1, active: 2, wait: 1, repeat: 2}
callbacks: {memory_monitor: {dist_aggregate_batch_interval: 3}}
R
# shows FILE RANKS: what a viewer makes of a trace
shows() {
    perl -MJSON::PP -e '
        my ($path, $ranks) = @ARGV;
        open my $f, "<", $path or die "$path: $!\n";
        my $events = decode_json(do { local $/; <$f> });
        my (%names, %from, %to, %depth, %comm);
        for my $e (@$events) {
            my $r = $e->{pid};
            $names{$r} = $e->{args}{name} if $e->{name} eq "process_name";
            next if $e->{ph} eq "M";
            $from{$r} = $e->{ts} if !defined $from{$r} || $e->{ts} < $from{$r};
            $to{$r} = $e->{ts} if !defined $to{$r} || $e->{ts} > $to{$r};
            $depth{$r}++ if $e->{ph} eq "B";
            $depth{$r}-- if $e->{ph} eq "E";
        }
        die "ranks: ", join(",", sort keys %names), "\n" if keys(%names) != $ranks;
        for my $r (0 .. $ranks - 1) {
            die "rank $r is called $names{$r}\n" if $names{$r} !~ /, rank $r$/;
            die "rank $r: $depth{$r} spans do not end\n" if $depth{$r};
            # They step together: each stretch has most of rank 0s in it.
            my $begin = $from{$r} > $from{0} ? $from{$r} : $from{0};
            my $end = $to{$r} < $to{0} ? $to{$r} : $to{0};
            die "rank $r is elsewhere in time\n" if $end - $begin < 0.5 * ($to{0} - $from{0});
        }' "$@" 2>why
}
run train r.yaml -n 3 --progress none --run_directory run
exits 0 'three ranks train with a profile'
sed 's/^/# /' err
is "$(cd run/traces && echo *)" \
    'ep0-ba4-merged.json ep0-ba4-rank0.json ep0-ba4-rank1.json ep0-ba4-rank2.json ep1-ba8-merged.json ep1-ba8-rank0.json ep1-ba8-rank1.json ep1-ba8-rank2.json' \
    'each rank has a trace of each cycle, and there is one of all'
for cycle in ep0-ba4 ep1-ba8; do
    shown=why
    shows run/traces/$cycle-merged.json 3
    ok $? "$cycle: the merged one has all ranks, at the same time, and every span ends"
done
shows run/traces/ep0-ba4-rank0.json 1
ok $? 'that of a rank is its own'
shown="out err"
# memory BATCH: names and values of the record
perl -MJSON::PP -ne '$r = decode_json($_); next unless $r->{ev} eq "batch";
    $m = $r->{m} || $r->{metrics} || $r; %v = map { /^memory\// ? ($_ => $m->{$_}) : () } keys %$m;
    push @has, $r->{ba} if exists $v{"memory/current_allocated_mem_avg"};
    for $k (grep { /_avg$/ } keys %v) { ($s = $k) =~ s/_avg$//;
        $bad++ unless $v{"${s}_min"} <= $v{$k} && $v{$k} <= $v{"${s}_max"} && $v{"${s}_min"} > 0 &&
            $v{$s} >= $v{"${s}_min"} && $v{$s} <= $v{"${s}_max"} }
    END { print join(" ", @has), $bad ? " bad" : "" }' run/metrics.jsonl >memory 2>why
is "$(cat memory)" '3 6 9' 'every third record has the least, average and most memory of the ranks'
run train r.yaml --progress none --run_directory alone
exits 0 'one rank trains likewise'
is "$(cd alone/traces && echo *)" 'ep0-ba4-rank0.json ep1-ba8-rank0.json' 'and has nothing to merge'
finish
