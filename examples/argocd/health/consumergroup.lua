-- Generated from crates/crd/health.lua: cargo run -p tidemill-crd --example generate
-- Health of a Cluster, Topic or ConsumerGroup of tidemill.dev, as its conditions say it. Agrees with kstatus.
local health = {}

local function find(conditions, wanted)
  for _, condition in ipairs(conditions or {}) do
    if condition.type == wanted then
      return condition
    end
  end
  return nil
end

local function is_true(condition)
  return condition ~= nil and condition.status == "True"
end

local status = obj.status or {}
local generation = obj.metadata.generation

-- Whatever is said about an older generation, or by nobody, is not said about this one.
if status.observedGeneration == nil or status.observedGeneration == -1
    or (generation ~= nil and status.observedGeneration ~= generation) then
  health.status = "Progressing"
  health.message = "Waiting for the operator to look at this generation"
  return health
end

local ready = find(status.conditions, "Ready")
local reconciling = find(status.conditions, "Reconciling")
local stalled = find(status.conditions, "Stalled")

if obj.spec ~= nil and obj.spec.paused == true then
  health.status = "Suspended"
  health.message = "Paused by spec.paused"
elseif is_true(stalled) then
  health.status = "Degraded"
  health.message = stalled.message
elseif is_true(reconciling) then
  health.status = "Progressing"
  health.message = reconciling.message
elseif is_true(ready) then
  health.status = "Healthy"
  health.message = ready.message
else
  health.status = "Progressing"
  health.message = ready ~= nil and ready.message or "Waiting for the operator"
end

return health
