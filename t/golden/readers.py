#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the files of t/golden/readers with the packages that they are for, and says what
those found: TensorBoard's EventAccumulator, the records of wandb, MLflow's file store.

    python3 t/golden/readers.py > t/golden/readers/said.txt

t/unit/readers.c compares what the loggers write with the files. This script needs the
packages of PyPI (tensorboard, wandb, mlflow), and is run by hand when the files change.
said.txt has the versions that read them last."""
import os
import pathlib
import struct
import sys
import tempfile
import zlib

here = pathlib.Path(__file__).parent / 'readers'


def tensorboard():
    import tensorboard
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import metadata
    print('tensorboard', tensorboard.__version__)
    with tempfile.TemporaryDirectory() as folder:
        os.symlink((here / 'events.tfevents').resolve(), folder + '/events.out.tfevents.1')
        run = EventAccumulator(folder)
        run.Reload()
        for tag in run.Tags()['scalars']:
            print(' scalar', tag, [(e.step, e.value) for e in run.Scalars(tag)])
        for tag in run.Tags()['images']:
            print(' image', tag, [(e.step, e.width, e.height, e.encoded_image_string[:4])
                                  for e in run.Images(tag)])
        for tag in run.Tags()['tensors']:
            meta = run.SummaryMetadata(tag)
            if meta.plugin_data.plugin_name == 'text':
                print(' text', tag, [e.tensor_proto.string_val[0] for e in run.Tensors(tag)])
        content = run.PluginTagToContent('hparams')
        start = metadata.parse_session_start_info_plugin_data(
            content['_hparams_/session_start_info'])
        for name, value in sorted(start.hparams.items()):
            print(' hparam', name, str(value).strip())
        end = metadata.parse_session_end_info_plugin_data(content['_hparams_/session_end_info'])
        print(' session', start.group_name, 'status', end.status, 'seconds',
              end.end_time_secs - start.start_time_secs)


def frames(data):
    """The records of a log in LevelDB's format."""
    assert struct.unpack('<4sHB', data[:7]) == (b':W&B', 0xbee1, 0)
    at, whole = 7, b''
    while at < len(data):
        left = 32768 - at % 32768
        if left < 7:
            assert data[at:at + left] == bytes(left)
            at += left
            continue
        crc, n, kind = struct.unpack('<IHB', data[at:at + 7])
        part = data[at + 7:at + 7 + n]
        assert crc == zlib.crc32(part, zlib.crc32(bytes([kind]))), 'a checksum is wrong'
        at += 7 + n
        whole += part
        if kind in (1, 4):
            yield whole
            whole = b''


def wandb():
    import wandb
    from wandb.proto import wandb_internal_pb2 as pb
    print('wandb', wandb.__version__)
    for name in ('run-1f2e3d4c.wandb', 'blocks.wandb'):
        count = 0
        for data in frames((here / name).read_bytes()):
            record = pb.Record()
            record.ParseFromString(data)
            kind = record.WhichOneof('record_type')
            count += 1
            assert record.num == count
            if name.startswith('blocks'):
                continue
            if kind == 'run':
                r = record.run
                print(' run', r.run_id, r.project, r.display_name, r.start_time.seconds)
                print(' config', {i.key: i.value_json for i in r.config.update})
            elif kind == 'history':
                print(' row', record.history.step.num,
                      {i.key: i.value_json for i in record.history.item})
            elif kind == 'summary':
                print(' summary', {i.key: i.value_json for i in record.summary.update})
            elif kind == 'exit':
                print(' exit', record.exit.exit_code)
        print('', name, count, 'records')


def numpy():
    import numpy
    print('numpy', numpy.__version__)
    with numpy.load(here / 'predictions.npz') as file:
        for name in file.files:
            print('', name, file[name].dtype, file[name].tolist())


def mlflow():
    os.environ['MLFLOW_ALLOW_FILE_STORE'] = 'true'
    import mlflow
    from mlflow.entities import ViewType
    from mlflow.store.tracking.file_store import FileStore
    print('mlflow', mlflow.__version__)
    with tempfile.TemporaryDirectory() as folder:
        for part in (here / 'mlruns.txt').read_text().split('== ')[1:]:
            name, text = part.split('\n', 1)
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text[:-1])
        store = FileStore(folder + '/mlruns', folder + '/artifacts')
        for e in store.search_experiments(ViewType.ALL):
            if e.name == 'Default':
                continue
            print(' experiment', e.experiment_id, e.name, e.lifecycle_stage)
            for run in store.search_runs([e.experiment_id], '', ViewType.ALL):
                print(' run', run.info.run_id, run.info.run_name, run.info.status,
                      run.info.end_time - run.info.start_time)
                print(' params', dict(sorted(run.data.params.items())))
                print(' tags', dict(sorted(run.data.tags.items())))
                for name in sorted(run.data.metrics):
                    print(' metric', name, [(m.step, m.value) for m in
                                            store.get_metric_history(run.info.run_id, name)])


sys.stderr = open(os.devnull, 'w')
tensorboard()
wandb()
numpy()
mlflow()
