module etcd-elector

go 1.26

require go.etcd.io/etcd/client/v3 v3.7.3
