# Interrupted training ends with the same bits as uninterrupted training.
# shellcheck shell=bash
training_data

test_training_goes_on_from_its_newest_checkpoint_after_a_kill() {
  local STEPS=12 begin
  trainer killed
  begin job on host1 "$BIN/lockstep" run --nproc_per_node 4 --max_restarts 1 -- "${TRAIN[@]}" train.ckpt_save_steps=2
  shows job 60 'step: \[5/'
  kill -KILL "$(pids_on 1 '^[^ ]*lockstep-train ' | tail -n 1)"
  ends job 60 0
  says 'SIGKILL' 'Resume train from epoch: 1, step: [0-9]+'
  same_weights killed 4
}

test_training_on_two_hosts_goes_on_after_a_kill() {
  local STEPS=12 host
  trainer killed2
  for host in host1 host2; do
    begin "$host" on "$host" env LOCKSTEP_SECRET=between-us "$BIN/lockstep" run --nproc_per_node 2 --nnodes 2:2 --rdzv_backend c10d \
      --rdzv_endpoint "$ENDPOINT" --rdzv_id train --max_restarts 1 -- "${TRAIN[@]}" train.ckpt_save_steps=2
  done
  until_true 60 grep -q 'step: \[5/' "$SHARED/runs/killed2/log_0.txt" || fail "no step 5"
  kill -KILL "$(pids_on 2 '^[^ ]*lockstep-train ' | tail -n 1)"
  for host in host1 host2; do ends "$host" 60 0; done
  grep -q 'Resume train from epoch: 1, step: ' "$SHARED/runs/killed2/log_0.txt" || fail "began anew"
  same_weights killed2 4
}

# elastic TYPE SAMPLES OPTIONS...: one epoch of SAMPLES samples with `lockstep run --nnodes 1:3`, in
# which two hosts join one after the other, and one is lost. The used samples are a prefix of the
# epoch's order; the rest is distributed to the present ranks. Each sample counts once.
elastic() {
  local name=elastic-$1 samples=$2 log count=0 i
  trainer "$name"
  log=$SHARED/runs/$name/log_0.txt
  TRAIN=("${TRAIN[@]:0:2}" --config "$ROOT/configs/$3" -o "train.ckpt_save_dir=$SHARED/runs/$name" train.max_steps=0 scheduler.num_epochs=1
    system.val_while_train=False system.log_interval=1 train.dataset_sink_mode=False train.ckpt_save_steps=2 parallel.threads=1
    train.loader.drop_remainder=False "${@:4}")
  elastic_trainer 1
  stepped 3
  elastic_trainer 2
  dealt_to 2
  stepped 2
  elastic_trainer 3
  dealt_to 3
  stepped 2
  kill_agent 3
  dealt_to 2 2
  for i in 1 2; do ends "host$i" 100 0; done
  says_not 'no further restart'
  grep -Eq '"epoch": 1,' "$SHARED/runs/$name/latest/state.json" || fail "the epoch is not done"
  count=$(sed -nE 's/^  "samples": ([0-9]+),$/\1/p' "$SHARED/runs/$name/latest/state.json")
  [ "$count" -ge "$samples" ] && [ "$count" -le $((samples + 2)) ] || fail "$count samples were used, of $samples"
}
elastic_trainer() { # I
  begin "host$1" on "host$1" env LOCKSTEP_SECRET=between-us "$BIN/lockstep" run --nproc_per_node 1 --nnodes 1:3 --rdzv_backend c10d \
    --rdzv_endpoint "$ENDPOINT" --rdzv_id "$name" --max_restarts 3 ${rank:+--node_rank "$rank"} -- "${TRAIN[@]}"
}
stepped() { # COUNT: waits for so many more lines of steps
  local before
  before=$(grep -c 'step: \[' "$log" 2>/dev/null) || before=0
  until_true 60 more_steps "$((before + $1))" || { cp "$OUTPUT.host1" "$OUTPUT"; fail "no $1 further steps"; }
}
more_steps() { [ "$(grep -c 'step: \[' "$log")" -ge "$1" ]; }
dealt_to() { # RANKS [TIMES]
  until_true 60 dealings "$1" "${2:-1}" || { cp "$log" "$OUTPUT"; fail "the rest was not dealt to $1 ranks"; }
}
dealings() { [ "$(grep -c "the rest is dealt to $1 in" "$log")" -ge "$2" ]; }

text_data() { [ -e "$SHARED/text" ] || "$BIN/lockstep" data synth-ocr --det 60 --rec 120 --size 160x160 -o "$SHARED/text" >/dev/null 2>&1; }

test_a_classifier_goes_on_while_hosts_come_and_go_within_an_epoch() {
  elastic cls 200 cls/resnet/resnet18_cifar10.yaml "train.dataset.data_dir=$SHARED/data" "eval.dataset.data_dir=$SHARED/data" \
    train.loader.batch_size=2
}
test_a_detector_goes_on_while_hosts_come_and_go_within_an_epoch() {
  text_data
  elastic det 60 det/dbnet/db_r18_synth.yaml "train.dataset.dataset_root=$SHARED/text" "eval.dataset.dataset_root=$SHARED/text" \
    train.loader.batch_size=1 train.loader.num_workers=1 model.neck.out_channels=32 "train.dataset.transform_pipeline=[{DecodeImage: {img_mode: RGB}}, {DetLabelEncode: }, {RandomCropWithBBox: {crop_size: [64, 64], p: 1.0}}, {ValidatePolygons: }, {ShrinkBinaryMap: {min_text_size: 3}}, {BorderMap: }, {NormalizeImage: {mean: imagenet, std: imagenet}}, {ToCHWImage: }]"
}
test_a_recogniser_goes_on_while_hosts_come_and_go_within_an_epoch() {
  text_data
  elastic rec 120 rec/crnn/crnn_vgg7_synth.yaml "train.dataset.dataset_root=$SHARED/text" "eval.dataset.dataset_root=$SHARED/text" \
    train.loader.batch_size=1 train.loader.num_workers=1 model.neck.hidden_size=64
}

# 3 ranks cannot share 2 virtual ranks.
test_more_ranks_than_virtual_ranks_do_not_end_a_job() {
  local name=unshared i VIRTUAL_RANKS=2
  trainer "$name"
  TRAIN+=(train.max_steps=40 train.ckpt_save_steps=2)
  log=$SHARED/runs/$name/log_0.txt
  for i in 1 2; do elastic_trainer "$i"; done
  stepped 3
  elastic_trainer 3
  until_true 60 grep -q '3 ranks cannot share 2 virtual ranks.*each rank has one virtual rank' "$log" || fail "no warning"
  kill_agent 2
  for i in 1 3; do ends "host$i" 100 0; done
  until_true 1 grep -Eq 'step: \[[0-9]+/' "$log" || fail "no steps"
}

# The host of rank 0 stops, the job goes on without it, and the host wakes up. Its workers belong to
# an abandoned generation.
test_a_host_that_wakes_up_writes_nothing_into_the_results_of_others() {
  local name=woken i folder=$SHARED/runs/woken
  trainer "$name"
  TRAIN+=(parallel.virtual_ranks=0 train.max_steps=0 scheduler.num_epochs=1 train.ckpt_save_steps=1
    train.loader.drop_remainder=False)
  log=$folder/log_0.txt
  rank=1 elastic_trainer 1
  rank=0 elastic_trainer 2
  stepped 4
  host_pause 2
  dealt_to 1
  stepped 4
  host_resume 2
  dealt_to 2
  for i in 1 2; do ends "host$i" 100 0; done
  [ -z "$(find "$folder" -maxdepth 1 -name '.*.tmp-*')" ] || fail "half written: $(ls -A "$folder")"
  [ "$(find "$folder" -maxdepth 1 -name '.writer-*' | wc -l)" = 1 ] || fail "marks: $(ls -A "$folder")"
  count=$(sed -nE 's/^  "samples": ([0-9]+),$/\1/p' "$folder/latest/state.json")
  [ "$count" -ge 200 ] && [ "$count" -le 204 ] || fail "$count samples were used, of 200"
}
