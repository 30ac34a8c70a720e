-- A stand-in for the rule that Alpha's Slurm applies when a job is submitted:
-- at most 6 CPUs for each GPU, unless the job takes whole nodes.

CPUS_PER_GPU = 6

-- The number of GPUs in a request such as "gres:gpu:2" or "gres:gpu", or 0.
local function gpus_of(request)
    if request == nil or not string.find(request, "gpu") then
        return 0
    end
    return tonumber(string.match(request, "gpu[%w:]*:(%d+)")) or 1
end

function slurm_job_submit(job, partitions, uid)
    local gpus = gpus_of(job.tres_per_node) * math.max(job.min_nodes, 1)
    if job.min_nodes == slurm.NO_VAL then
        gpus = gpus_of(job.tres_per_node)
    end
    if gpus > 0 and job.shared ~= 0 and job.min_cpus ~= slurm.NO_VAL
        and job.min_cpus > CPUS_PER_GPU * gpus then
        slurm.log_user("Non-exclusive jobs on Alpha Centauri are allowed to request at most "
            .. CPUS_PER_GPU .. " CPU cores per requested GPU.")
        return slurm.ERROR
    end
    return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
    return slurm.SUCCESS
end
